//! The board in a browser: Chromium. Skipped where there is none, unless `REQUEUE_BROWSER` is set.

mod driver;

use driver::Browser;
use requeue::Queue;
use requeue_board::{serve, Board, InMemory};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const TOKEN: &str = "correct horse battery";
const SCRIPT: &str = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";

/// The queues `jobs` and `other`, and a server for them.
struct Shop {
    jobs: Queue<String>,
    other: Queue<String>,
    port: u16,
    server: Option<Runtime>,
}

impl Shop {
    async fn open() -> Self {
        let make = || Queue::builder().tracked().build();
        let (jobs, other, port, server) = (make(), make(), 0, None);
        let mut shop = Self {
            jobs,
            other,
            port,
            server,
        };
        shop.serve().await;
        shop
    }

    /// Starts a server at the same port.
    async fn serve(&mut self) {
        let server = Runtime::new().unwrap();
        let board = Board::new().queue("jobs", InMemory::new(&self.jobs));
        let board = board
            .queue("other", InMemory::new(&self.other))
            .token(TOKEN);
        let port = self.port;
        let listen =
            server.spawn(async move { TcpListener::bind(("127.0.0.1", port)).await.unwrap() });
        let listener = listen.await.unwrap();
        self.port = listener.local_addr().unwrap().port();
        server.spawn(async move { serve(listener, board.into_router()).await });
        self.server = Some(server);
    }

    /// Ends the server with all its connections.
    fn end(&mut self) {
        if let Some(server) = self.server.take() {
            server.shutdown_background();
        }
    }

    fn fail(&self, item: &str, error: &str) {
        self.jobs.push(item.into()).unwrap();
        self.jobs.take().unwrap().fail(error);
    }
}

/// A runtime must not be dropped in a task.
impl Drop for Shop {
    fn drop(&mut self) {
        self.end();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_is_made_by_clicks() {
    let shop = Shop::open().await;
    let Some(browser) = Browser::open(shop.port).await else {
        return;
    };
    for name in ["a", "b", "c"] {
        shop.fail(name, "no route");
    }
    browser.log_in(TOKEN).await;
    browser.click("jobs").await;
    browser.change("Pause").await;
    assert!(shop.jobs.is_paused());
    browser.change("Resume").await;
    assert!(!shop.jobs.is_paused());
    browser.type_into("input[name=rate]", "0.5").await;
    browser.change("Set pace").await;
    assert!(!shop.jobs.pace().is_unlimited());
    browser.change("Set pace").await;
    assert!(shop.jobs.pace().is_unlimited());
    browser.click("Dead letters").await;
    browser.until_shown("3 found").await;
    browser.change("Retry").await; // the first one
    assert_eq!(shop.jobs.pop().as_deref(), Ok("a"));
    browser.click("Dead letters").await;
    browser.change("Move").await;
    assert_eq!(shop.other.pop().as_deref(), Ok("b"));
    browser.click("Dead letters").await;
    browser.change("Delete").await;
    assert_eq!(shop.jobs.dead_letters().len(), 0);
    shop.jobs.push("ready".into()).unwrap();
    browser.click("Items").await;
    browser.change("Remove").await;
    assert!(shop.jobs.is_empty());
    browser.click("Changes").await;
    browser
        .until("document.querySelectorAll('.log li').length === 8")
        .await;
    browser.click("Log out").await;
    browser.until_shown("Log in to change").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_are_live_and_keep_the_focus() {
    let shop = Shop::open().await;
    let Some(browser) = Browser::open(shop.port).await else {
        return;
    };
    browser
        .until("document.getElementById('state').textContent === 'live'")
        .await;
    browser
        .script("document.getElementById('q-jobs').focus()")
        .await;
    shop.jobs
        .push_batch((0..1234).map(|number| number.to_string()))
        .unwrap();
    browser.until_shown("1\u{202f}234").await; // without another load
    browser
        .until("document.activeElement.id === 'q-jobs'")
        .await;
    browser.go("/queue?name=jobs").await;
    browser
        .until("document.querySelectorAll('svg path').length === 4")
        .await;
    shop.jobs.clear();
    browser
        .until("document.querySelector('.numbers dd').textContent === '0'")
        .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_goes_away_is_said_to() {
    let mut shop = Shop::open().await;
    let Some(browser) = Browser::open(shop.port).await else {
        return;
    };
    browser
        .until("document.getElementById('state').textContent === 'live'")
        .await;
    shop.end();
    browser.until("document.querySelector('#state.bad')?.textContent.startsWith('no connection, figures of')").await;
    browser.until_shown("other").await; // the last figures
    shop.serve().await;
    browser
        .until("document.getElementById('state').textContent === 'live'")
        .await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_in_payloads_do_not_run() {
    let shop = Shop::open().await;
    let Some(browser) = Browser::open(shop.port).await else {
        return;
    };
    shop.fail(SCRIPT, SCRIPT);
    shop.jobs.push(SCRIPT.into()).unwrap();
    let mut worker = shop.jobs.named_handle(SCRIPT);
    let tx = worker.begin();
    tx.pop().unwrap();
    for page in [
        "/",
        "/queue?name=jobs",
        "/entries?queue=jobs&dead=1",
        "/entries?queue=jobs&dead=1&text=%3Cscript%3E",
    ] {
        browser.go(page).await;
        if page.starts_with("/queue") {
            browser
                .until("document.getElementById('state').textContent === 'live'")
                .await;
            browser.until_shown("<img").await;
        }
        assert_eq!(
            browser
                .script("return window.hacked ?? document.images.length")
                .await,
            json!(0),
            "{page}"
        );
    }
    // The policy holds where a text is not escaped.
    browser.script("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked=1\">')").await;
    browser.until("document.images[0].complete").await;
    assert_eq!(browser.script("return window.hacked ?? 0").await, json!(0));
    browser.close().await;
}

/// Texts whose contrast with the background is too low.
const FAINT: &str = "
    const light = (color) => {
        const parts = color.match(/[0-9.]+/g).slice(0, 3).map((part) => {
            const value = part / 255;
            return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const back = (element) => {
        const color = getComputedStyle(element).backgroundColor;
        return /, 0\\)/.test(color) ? back(element.parentElement) : color;
    };
    const texts = [...document.querySelectorAll('main *, header *')].filter((it) =>
        [...it.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && !it.closest('svg'));
    return texts.filter((it) => {
        const [one, other] = [light(getComputedStyle(it).color), light(back(it))];
        return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5;
    }).map((it) => it.outerHTML);";

#[tokio::test(flavor = "multi_thread")]
async fn both_themes_and_a_phone_are_readable() {
    let shop = Shop::open().await;
    let Some(browser) = Browser::open(shop.port).await else {
        return;
    };
    shop.fail(&"a long word ".repeat(99), &"Error".repeat(99));
    shop.jobs.pause();
    browser.log_in(TOKEN).await;
    let mut backs = Vec::new();
    for theme in ["light", "dark"] {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        browser.cdp("Emulation.setEmulatedMedia", features).await;
        for (width, is_phone) in [(1280_i64, false), (360, true)] {
            let phone = json!({ "width": width, "height": 740, "deviceScaleFactor": 2, "mobile": is_phone });
            browser
                .cdp("Emulation.setDeviceMetricsOverride", phone)
                .await;
            for page in [
                "/",
                "/queue?name=jobs",
                "/entries?queue=jobs&dead=1",
                "/changes",
                "/login",
            ] {
                browser.go(page).await;
                assert_eq!(browser.script(FAINT).await, json!([]), "{theme} {page}");
                let wide = browser
                    .script("return document.documentElement.scrollWidth")
                    .await;
                assert!(
                    wide.as_i64().unwrap() <= width,
                    "{theme} {width} {page}: {wide} wide"
                );
            }
        }
        backs.push(
            browser
                .script("return getComputedStyle(document.body).backgroundColor")
                .await,
        );
    }
    assert_ne!(backs[0], backs[1]);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_used_by_the_keyboard() {
    let shop = Shop::open().await;
    let Some(browser) = Browser::open(shop.port).await else {
        return;
    };
    shop.fail("a", "no route");
    shop.fail("b", "timeout");
    browser.log_in(TOKEN).await;
    browser.go("/entries?queue=jobs&dead=1").await;
    let keys = |keys: &'static str| async {
        let focused = browser.client.active_element().await.unwrap();
        focused.send_keys(keys).await.unwrap();
    };
    keys("/").await;
    browser
        .until("document.activeElement.id === 'search'")
        .await;
    keys("timeout\u{e007}").await; // and Enter
    browser.until_shown("1 found").await;
    // To the first button of the letter.
    for _ in 0..40 {
        if browser
            .script("return document.activeElement.textContent")
            .await
            == json!("Retry")
        {
            break;
        }
        keys("\u{e004}").await; // Tab
    }
    let outline = browser
        .script("return getComputedStyle(document.activeElement).outlineStyle")
        .await;
    assert_eq!(outline, json!("solid"), "the focus is seen");
    keys("\u{e007}").await;
    browser
        .until("document.activeElement.textContent === 'Yes, retry'")
        .await;
    keys("\u{e007}").await;
    browser.until("document.querySelector('.done')").await;
    assert_eq!(shop.jobs.pop().as_deref(), Ok("b"));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_letters_are_paged() {
    let shop = Shop::open().await;
    let Some(browser) = Browser::open(shop.port).await else {
        return;
    };
    for number in 0..100_000 {
        shop.fail(&format!("letter {number}"), "no route");
    }
    browser.go("/entries?queue=jobs&dead=1").await;
    browser.until_shown("100\u{202f}000 found").await;
    browser
        .until("document.querySelectorAll('.entries > li').length === 50")
        .await;
    browser.click("Next ›").await;
    browser.until_shown("letter 50\"").await;
    browser.type_into("#search", "letter 99999").await;
    browser.click("Search").await;
    browser.until_shown("1 found").await;
    browser.close().await;
}
