//! Connections with TLS, to a server whose certificate is made by the test.

use crate::server::{Server, SERVER};
use crate::LONG;
use requeue_postgres::rustls::pki_types::pem::PemObject;
use requeue_postgres::rustls::pki_types::CertificateDer;
use requeue_postgres::rustls::{ClientConfig, RootCertStore};
use requeue_postgres::{Error, PgQueue, Postgres};
use std::path::Path;
use tokio_postgres::NoTls;

fn trusting(root: &Path) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(root).unwrap())
        .unwrap();
    ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The text of an error, with its causes.
fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

#[tokio::test]
async fn all_connections_have_tls_and_others_than_the_server_are_refused() {
    let server = Server::start_with_tls();
    let url = server.tls_url("localhost");
    let root = server.folder().join("data/root.crt");
    let connect = |url: &str, root: &Path| Postgres::options(url).tls(trusting(root)).connect();
    let (db, other) = tokio::join!(
        connect(&url, &root),
        connect(&format!("{url} sslmode=disable"), &root)
    );
    let (db, other) = (db.unwrap(), other.unwrap());
    db.install().await.unwrap();
    let queue: PgQueue<u32> = db.queue("q");
    let waits = tokio::spawn(async move {
        let queue: PgQueue<u32> = other.queue("q");
        let mut tx = other.begin().await.unwrap();
        let item = tx.pop_wait(&queue, LONG).await.unwrap();
        tx.commit().await.unwrap();
        item.map(|item| *item)
    });
    let (admin, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let listens = "select count(*) filter (where ssl and query like 'listen%'), count(*) filter (where not ssl)
        from pg_stat_ssl join pg_stat_activity using (pid) where client_addr is not null";
    crate::until(|| async {
        let row = admin.query_one(listens, &[]).await.unwrap();
        assert_eq!(row.get::<_, i64>(1), 0);
        row.get::<_, i64>(0) == 1
    })
    .await;
    queue.push(7).await.unwrap();
    assert_eq!(waits.await.unwrap(), Some(7));

    let untrusted = connect(&url, &server.folder().join("data/other.crt"))
        .await
        .unwrap_err();
    assert!(
        text(&untrusted).contains("UnknownIssuer"),
        "{}",
        text(&untrusted)
    );
    let elsewhere = connect(&server.tls_url("elsewhere"), &root)
        .await
        .unwrap_err();
    assert!(
        text(&elsewhere).contains("not valid for name"),
        "{}",
        text(&elsewhere)
    );
    let plain = connect(&SERVER.url(), &root).await.unwrap_err();
    assert!(text(&plain).contains("TLS"), "{}", text(&plain));
    let refused = Postgres::connect(&url).await.unwrap_err();
    assert!(
        text(&refused).contains("no encryption"),
        "{}",
        text(&refused)
    );
}
