//! The server: its address, and whether connections to it have TLS.

use super::postgres::POOL_WAIT;
use crate::error::{Error, Result};
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use std::task::{Context, Poll};
#[cfg(feature = "tls")]
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Socket};
#[cfg(feature = "tls")]
use tokio_postgres_rustls::MakeRustlsConnect;

/// Whether connections have TLS.
#[derive(Clone, Default)]
pub(super) enum Tls {
    #[default]
    None,
    #[cfg(feature = "tls")]
    Rustls(MakeRustlsConnect),
}

#[cfg(feature = "tls")]
impl Tls {
    /// Refuses servers without TLS: whoever is between could say that the server has none.
    fn require(&self, mut config: Config) -> Config {
        if let Self::Rustls(_) = self {
            config.ssl_mode(SslMode::Require);
        }
        config
    }
}

/// How to connect to a server.
#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
    tls: Tls,
}

/// Polls a connection for what the server sends unasked.
pub(crate) type Messages = Box<
    dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>> + Send,
>;

impl Server {
    pub(super) fn new(config: Config, tls: &Tls) -> Self {
        #[cfg(feature = "tls")]
        let config = tls.require(config);
        let tls = tls.clone();
        Self { config, tls }
    }

    /// A pool of `size` connections.
    pub(super) fn pool(&self, size: usize) -> Result<Pool> {
        let recycling = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let config = self.config.clone();
        let manager = match &self.tls {
            Tls::None => Manager::from_config(config, NoTls, recycling),
            #[cfg(feature = "tls")]
            Tls::Rustls(tls) => Manager::from_config(config, tls.clone(), recycling),
        };
        Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(POOL_WAIT))
            .build()
            .map_err(|error| Error::Pool(error.to_string().into()))
    }

    /// A connection whose messages the caller polls.
    pub(crate) async fn connect(&self) -> Result<(Client, Messages), tokio_postgres::Error> {
        match &self.tls {
            Tls::None => self.connect_with(NoTls).await,
            #[cfg(feature = "tls")]
            Tls::Rustls(tls) => self.connect_with(tls.clone()).await,
        }
    }

    async fn connect_with<T>(&self, tls: T) -> Result<(Client, Messages), tokio_postgres::Error>
    where
        T: MakeTlsConnect<Socket, Stream: Send + 'static, TlsConnect: Send> + Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (client, mut connection) = self.config.connect(tls).await?;
        Ok((
            client,
            Box::new(move |context| connection.poll_message(context)),
        ))
    }
}
