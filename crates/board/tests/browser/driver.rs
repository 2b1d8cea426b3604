//! A browser, driven over `WebDriver`.

use axum::http::Method;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{json, Value};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use url::{ParseError, Url};

/// How long to wait for what the page is to show.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the driver, and ends it when the standard input is closed: when this process ends.
const DRIVE: &str = "chromedriver --port=$0 >/dev/null 2>&1 & cat; kill $!";

/// The port of the driver of this test program. `None` without a browser.
fn driver() -> Option<u16> {
    static DRIVER: OnceLock<Option<(u16, Child)>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let is_there = |name: &str| Path::new("/usr/bin").join(name).is_file();
        if !is_there("chromedriver") || !is_there("chromium") {
            assert!(
                std::env::var_os("REQUEUE_BROWSER").is_none(),
                "apt-get install chromium chromium-driver"
            );
            eprintln!(
                "skipped, since there is no browser: apt-get install chromium chromium-driver"
            );
            return None;
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", DRIVE, &port.to_string()])
            .stdin(Stdio::piped());
        Some((port, shell.spawn().unwrap()))
    });
    driver.as_ref().map(|driver| driver.0)
}

/// A command of the browser's own protocol.
#[derive(Debug)]
struct Cdp(&'static str, Value);

impl WebDriverCompatibleCommand for Cdp {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (
            Method::POST,
            Some(json!({ "cmd": self.0, "params": self.1 }).to_string()),
        )
    }
}

/// A page of a board.
pub(crate) struct Browser {
    pub(crate) client: Client,
    base: String,
}

impl Browser {
    /// Opens the board at this port. `None` without a browser.
    pub(crate) async fn open(port: u16) -> Option<Self> {
        let driver = format!("http://127.0.0.1:{}", driver()?);
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ];
        let mut capabilities = Capabilities::new();
        capabilities.insert("goog:chromeOptions".into(), json!({ "args": arguments }));
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let connect = async {
            loop {
                match builder.connect(&driver).await {
                    Ok(client) => return client,
                    Err(_) => sleep(Duration::from_millis(50)).await, // the driver is starting
                }
            }
        };
        let client = timeout(PATIENCE, connect).await.expect("a browser");
        let browser = Self {
            client,
            base: format!("http://127.0.0.1:{port}"),
        };
        browser.go("/").await;
        Some(browser)
    }

    pub(crate) async fn go(&self, path: &str) {
        self.client
            .goto(&format!("{}{path}", self.base))
            .await
            .unwrap();
    }

    pub(crate) async fn cdp(&self, name: &'static str, parameters: Value) -> Value {
        self.client.issue_cmd(Cdp(name, parameters)).await.unwrap()
    }

    pub(crate) async fn script(&self, text: &str) -> Value {
        self.client.execute(text, Vec::new()).await.unwrap()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until<'a>(
        &'a self,
        expression: &'a str,
    ) -> impl std::future::Future<Output = ()> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let text = format!("return !!({expression})");
            let wait = async {
                while self.script(&text).await != Value::Bool(true) {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            let is_true = timeout(PATIENCE, wait).await.is_ok();
            let page = if is_true {
                String::new()
            } else {
                self.client.source().await.unwrap()
            };
            assert!(is_true, "{caller}: not {expression}: {page}");
        }
    }

    pub(crate) async fn until_shown(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({text:?})"))
            .await;
    }

    /// Clicks the first button or link with this text.
    pub(crate) async fn click(&self, text: &str) {
        let path = format!("//*[self::button or self::a][normalize-space()={text:?}]");
        self.click_at(Locator::XPath(&path)).await;
    }

    /// Clicks an element, which live figures may replace after it was found: then the new one.
    async fn click_at(&self, at: Locator<'_>) {
        loop {
            let found = self.client.wait().for_element(at).await;
            let found = found.unwrap_or_else(|error| panic!("{at:?}: {error}"));
            match found.click().await {
                Err(error) if error.is_stale_element_reference() => {}
                clicked => return clicked.unwrap(),
            }
        }
    }

    /// Clicks, and confirms the change.
    pub(crate) async fn change(&self, text: &str) {
        self.click(text).await;
        self.until("document.querySelector('.question')").await;
        self.click_at(Locator::Css(".primary")).await;
        self.until("document.querySelector('.done')").await;
    }

    pub(crate) async fn type_into(&self, selector: &str, text: &str) {
        let field = self
            .client
            .wait()
            .for_element(Locator::Css(selector))
            .await
            .unwrap();
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    pub(crate) async fn log_in(&self, token: &str) {
        self.go("/login").await;
        self.type_into("input[name=token]", token).await;
        self.click("Log in").await;
        self.until_shown("Log out").await;
    }

    pub(crate) async fn close(self) {
        self.client.close().await.unwrap();
    }
}
