//! Connections with TLS, to a server whose certificate is made by the test.

use crate::server::{as_owner, run, Server, SERVER};
use crate::LONG;
use requeue_postgres::rustls::pki_types::pem::PemObject;
use requeue_postgres::rustls::pki_types::CertificateDer;
use requeue_postgres::rustls::{ClientConfig, RootCertStore};
use requeue_postgres::{Error, PgQueue, Postgres};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use tokio_postgres::NoTls;

/// Makes a root certificate, that of a server signed by it, and another root.
const CERTIFY: &str = r#"umask 077; cd "$0" || exit; new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
for root in root other; do openssl req -x509 $new -keyout $root.key -out $root.crt -days 2 -subj /CN=$root || exit; done
openssl req $new -keyout server.key -out server.csr -subj /CN=localhost && echo subjectAltName=DNS:localhost >names &&
openssl x509 -req -in server.csr -CA root.crt -CAkey root.key -CAcreateserial -out server.crt -days 2 -extfile names &&
printf 'local all all trust\nhostssl all all 127.0.0.1/32 trust\n' >pg_hba.conf"#;

/// Starts a server that also has a port of this machine, with TLS only: it needs the program `openssl`.
fn start() -> Server {
    let mut server = Server::start("off");
    let data = server.folder().join("data");
    run(as_owner("sh")
        .args(["-c", CERTIFY])
        .arg(data)
        .stderr(Stdio::null()));
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    server.port = free.local_addr().unwrap().port();
    drop(free);
    let options = format!(
        "-c fsync=off -c listen_addresses=127.0.0.1 -c port={} -c ssl=on",
        server.port
    );
    server.control(&["restart"], &options);
    server
}

/// The server under a name, with the port.
fn url(server: &Server, name: &str) -> String {
    let port = server.port;
    format!("host={name} hostaddr=127.0.0.1 port={port} user=postgres dbname=postgres")
}

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
    let server = start();
    let good = url(&server, "localhost");
    let root = server.folder().join("data/root.crt");
    let connect = |url: &str, root: &Path| Postgres::options(url).tls(trusting(root)).connect();
    let (db, other) = tokio::join!(
        connect(&good, &root),
        connect(&format!("{good} sslmode=disable"), &root)
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

    let untrusted = connect(&good, &server.folder().join("data/other.crt"))
        .await
        .unwrap_err();
    assert!(
        text(&untrusted).contains("UnknownIssuer"),
        "{}",
        text(&untrusted)
    );
    let elsewhere = connect(&url(&server, "elsewhere"), &root)
        .await
        .unwrap_err();
    assert!(
        text(&elsewhere).contains("not valid for name"),
        "{}",
        text(&elsewhere)
    );
    let plain = connect(&SERVER.url(), &root).await.unwrap_err();
    assert!(text(&plain).contains("TLS"), "{}", text(&plain));
    let refused = Postgres::connect(&good).await.unwrap_err();
    assert!(
        text(&refused).contains("no encryption"),
        "{}",
        text(&refused)
    );
}
