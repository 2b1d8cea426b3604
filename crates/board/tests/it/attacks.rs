//! What an attacker may try, as tables.

use crate::client::{board, body, dead, logged_in, Client, TOKEN};
use axum::body::Body;
use axum::http::StatusCode;
use requeue::Queue;
use requeue_board::{Board, InMemory};

/// Texts that would be scripts, tags, attributes or ends of them.
const SCRIPTS: [&str; 8] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "\" autofocus onfocus=\"alert(1)",
    "</pre></details><svg onload=alert(1)>",
    "</title><script>alert(1)</script>",
    "&lt;script&gt;",
    "javascript:alert(1)",
];

/// The tags of a page, each with its attributes.
fn tags(text: &str) -> Vec<String> {
    let begins = text.match_indices('<');
    begins
        .map(|(at, _)| text[at..].split('>').next().unwrap().to_lowercase())
        .collect()
}

#[track_caller]
fn has_no_script(page: &str, script: &str) {
    for tag in tags(page) {
        let name = tag[1..].split([' ', '/']).next().unwrap();
        assert!(
            !matches!(name, "img" | "iframe" | "object" | "base"),
            "{tag} by {script}"
        );
        assert!(
            name != "script" || tag.contains("src=\"/board.js\""),
            "{tag} by {script}"
        );
        // Outside of the values of attributes.
        let names: String = tag.split('"').step_by(2).collect();
        assert!(
            !names.split_whitespace().any(|name| name.starts_with("on")),
            "{tag} by {script}"
        );
    }
    assert!(!page.contains("href=\"javascript"), "{script}");
}

#[tokio::test]
async fn scripts_are_shown_as_text() {
    for script in SCRIPTS {
        let queue = dead(&[(script, script)]);
        queue.push(script.to_owned()).unwrap();
        let mut worker = queue.named_handle(script);
        queue.push("held".to_owned()).unwrap();
        let tx = worker.begin();
        tx.pop().unwrap();
        let other = Queue::<String>::unbounded();
        let board = Board::new()
            .queue(script, InMemory::new(&queue))
            .queue("other", InMemory::new(&other));
        let mut client = Client::new(board.token(TOKEN));
        client.log_in().await;
        let name = form_urlencoded::byte_serialize(script.as_bytes()).collect::<String>();
        client
            .change(&[("queue", script), ("verb", "retry"), ("text", script)])
            .await;
        queue.take().unwrap().fail(script);
        for address in [
            "/".to_owned(),
            format!("/queue?name={name}&done={name}&verb={name}"),
            format!("/entries?queue={name}"),
            format!("/entries?queue={name}&dead=1"),
            format!("/entries?queue={name}&dead=1&text={name}"),
            "/changes".into(),
            format!("/{name}"),
        ] {
            has_no_script(&client.get(&address).await.text, script);
        }
        let asked = client
            .ask(&[
                ("queue", script),
                ("verb", "move"),
                ("to", "other"),
                ("text", script),
            ])
            .await;
        has_no_script(&asked.text, script);
    }
}

#[tokio::test]
async fn answers_forbid_scripts_frames_and_copies() {
    let client = Client::new(board(&dead(&[])));
    for address in [
        "/",
        "/queue?name=jobs",
        "/entries?queue=jobs",
        "/login",
        "/nothing",
        "/board.css",
    ] {
        let answer = client.get(address).await;
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("referrer-policy"), "same-origin");
        assert!(!answer.header("cache-control").is_empty());
        answer.hides("style=\"").hides("http://").hides("https://"); // no foreign host
    }
}

/// A change by a browser that is logged in, in which something is wrong.
#[derive(Clone, Copy)]
struct Forged<'a> {
    cookie: &'a str,
    form_token: &'a str,
    number: &'a str,
    header: (&'a str, &'a str),
}

impl Forged<'_> {
    async fn send(self, client: &Client, address: &str) -> StatusCode {
        let cookie = self.cookie.to_owned();
        let client = Client {
            cookie,
            ..client.clone()
        };
        let fields = [
            ("number", self.number),
            ("form_token", self.form_token),
            ("queue", "jobs"),
            ("verb", "pause"),
        ];
        let request = client
            .request("POST", address)
            .header(self.header.0, self.header.1);
        client
            .send(request.body(body(&fields)).unwrap())
            .await
            .status
    }
}

#[tokio::test]
async fn forged_posts_change_nothing() {
    let queue = dead(&[("a", "x")]);
    let (client, other) = (logged_in(&queue).await, logged_in(&queue).await); // of two boards
    let (form_token, others) = (client.form_token().await, other.form_token().await);
    let number = client
        .ask(&[("queue", "jobs"), ("verb", "pause")])
        .await
        .field("number");
    let good = Forged {
        cookie: &client.cookie,
        form_token: &form_token,
        number: &number,
        header: ("origin", "http://localhost:8017"),
    };
    let (short, long) = (
        &client.cookie[..client.cookie.len() - 1],
        format!("{}0", client.cookie),
    );
    let header = |name, value| Forged {
        header: (name, value),
        ..good
    };
    for (case, forged) in [
        (
            "no form token",
            Forged {
                form_token: "",
                ..good
            },
        ),
        (
            "that of another session",
            Forged {
                form_token: &others,
                ..good
            },
        ),
        ("no cookie", Forged { cookie: "", ..good }),
        (
            "that of another session",
            Forged {
                cookie: &other.cookie,
                ..good
            },
        ),
        (
            "a shorter cookie",
            Forged {
                cookie: short,
                ..good
            },
        ),
        (
            "a longer cookie",
            Forged {
                cookie: &long,
                ..good
            },
        ),
        ("another origin", header("origin", "http://evil.example")),
        ("another port", header("origin", "http://localhost:1")),
        ("no origin", header("origin", "null")),
        ("another site", header("sec-fetch-site", "cross-site")),
        (
            "another name of the site",
            header("sec-fetch-site", "same-site"),
        ),
    ] {
        for address in ["/change", "/confirm", "/logout"] {
            assert_eq!(
                forged.send(&client, address).await,
                StatusCode::FORBIDDEN,
                "{case}: {address}"
            );
        }
    }
    for number in ["", &number[1..], "0"] {
        let forged = Forged { number, ..good };
        assert_eq!(
            forged.send(&client, "/change").await,
            StatusCode::FORBIDDEN,
            "not shown: {number}"
        );
    }
    assert!(!queue.is_paused());
    // The same without a mistake, and once more.
    assert_eq!(good.send(&client, "/change").await, StatusCode::SEE_OTHER);
    assert!(queue.is_paused());
    queue.resume();
    assert_eq!(good.send(&client, "/change").await, StatusCode::FORBIDDEN);
    assert!(!queue.is_paused());
}

#[tokio::test]
async fn gets_change_nothing() {
    let queue = dead(&[("a", "x")]);
    let client = logged_in(&queue).await;
    let (token, asked) = (
        client.form_token().await,
        client.ask(&[("queue", "jobs"), ("verb", "pause")]).await,
    );
    let query = format!(
        "queue=jobs&verb=pause&form_token={token}&number={}",
        asked.field("number")
    );
    for path in ["change", "confirm", "logout", "queue"] {
        client.get(&format!("/{path}?{query}")).await;
        let request = client
            .request("PUT", &format!("/{path}?{query}"))
            .body(Body::empty())
            .unwrap();
        assert_eq!(
            client.send(request).await.status,
            StatusCode::METHOD_NOT_ALLOWED
        );
    }
    assert!(!queue.is_paused());
    client.get("/").await.shows("Log out"); // still
}

#[tokio::test]
async fn without_a_token_a_board_is_read_only() {
    for board in [
        board(&dead(&[("a", "x")])),
        board(&dead(&[("a", "x")])).token(""),
    ] {
        let client = Client::new(board);
        for token in ["", " ", TOKEN] {
            let answer = client.post("/login", &[("token", token)]).await;
            assert_eq!(
                (answer.status, answer.header("set-cookie")),
                (StatusCode::FORBIDDEN, "")
            );
        }
        for cookie in [
            "",
            "requeue_board=",
            "requeue_board=00000000000000000000000000000000",
        ] {
            let client = Client {
                cookie: cookie.into(),
                ..client.clone()
            };
            for address in ["/confirm", "/change", "/logout", "/nothing"] {
                let answer = client
                    .post(
                        address,
                        &[("form_token", ""), ("queue", "jobs"), ("verb", "pause")],
                    )
                    .await;
                assert_eq!(answer.status, StatusCode::FORBIDDEN);
            }
            client
                .get("/entries?queue=jobs&dead=1")
                .await
                .shows("read-only")
                .hides("Retry");
        }
    }
}

#[tokio::test]
async fn tokens_are_not_guessed() {
    let client = Client::new(board(&dead(&[])).token(TOKEN));
    let (short, long) = (&TOKEN[1..], format!("{TOKEN}x"));
    for token in ["", "correct horse batterz", short, &long, "%"] {
        assert_eq!(
            client.post("/login", &[("token", token)]).await.status,
            StatusCode::FORBIDDEN,
            "{token}"
        );
    }
    for _ in 0..5 {
        client.post("/login", &[("token", "guess")]).await;
    }
    assert_eq!(
        client.post("/login", &[("token", TOKEN)]).await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
}

#[tokio::test]
async fn a_foreign_page_does_not_log_in() {
    let client = Client::new(board(&dead(&[])).token(TOKEN));
    let request = client
        .request("POST", "/login")
        .header("origin", "http://evil.example");
    let answer = client
        .send(request.body(body(&[("token", TOKEN)])).unwrap())
        .await;
    assert_eq!(
        (answer.status, answer.header("set-cookie")),
        (StatusCode::FORBIDDEN, "")
    );
}

#[tokio::test]
async fn cookies_stay_with_the_board() {
    let client = Client::new(board(&dead(&[])).token(TOKEN).at("/queues").secure());
    let answer = client.post("/queues/login", &[("token", TOKEN)]).await;
    let cookie = answer.header("set-cookie");
    for part in [
        "; HttpOnly",
        "; SameSite=Strict",
        "; Secure",
        "; Path=/queues",
    ] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(TOKEN));
    let plain = Client::new(board(&dead(&[])).token(TOKEN))
        .post("/login", &[("token", TOKEN)])
        .await;
    assert!(!plain.header("set-cookie").contains("Secure"));
}

#[tokio::test]
async fn a_session_ends_by_its_log_out() {
    let queue = dead(&[]);
    let client = logged_in(&queue).await;
    let token = client.form_token().await;
    let answer = client.post("/logout", &[("form_token", &token)]).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    client.get("/").await.hides("Log out");
    assert_eq!(
        client
            .post("/confirm", &[("form_token", &token)])
            .await
            .status,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn a_private_board_shows_nothing_without_its_token() {
    let queue = dead(&[("a secret", "x")]);
    let mut client = Client::new(board(&queue).token(TOKEN).private());
    for address in [
        "/",
        "/queue?name=jobs",
        "/entries?queue=jobs&dead=1",
        "/changes",
        "/live",
        "/nothing",
    ] {
        let answer = client.get(address).await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (StatusCode::SEE_OTHER, "/login"),
            "{address}"
        );
        answer.hides("jobs").hides("secret");
    }
    client.get("/login").await.shows("Token").hides("jobs");
    client.log_in().await;
    client
        .get("/entries?queue=jobs&dead=1")
        .await
        .shows("a secret");
}

/// Names by which a page of another site would reach the board, after its own name resolves to this machine.
#[tokio::test]
async fn other_names_of_the_server_are_refused() {
    let client = Client::new(board(&dead(&[("secret", "x")])).hosts(["Shop.Example"]));
    let ask = |host: &'static str| {
        let request = axum::http::Request::builder()
            .uri("/entries?queue=jobs&dead=1")
            .header("host", host);
        client.send(request.body(Body::empty()).unwrap())
    };
    for host in [
        "localhost",
        "LOCALHOST:80",
        "127.0.0.1:8017",
        "[::1]:8017",
        "shop.example",
        "shop.example:443",
    ] {
        assert_eq!(ask(host).await.status, StatusCode::OK, "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example:localhost",
        "[::2]",
        "",
        "shop.example.evil",
    ] {
        let answer = ask(host).await;
        assert_eq!(answer.status, StatusCode::MISDIRECTED_REQUEST, "{host}");
        answer.hides("secret");
    }
    let none = axum::http::Request::builder()
        .uri("/")
        .body(Body::empty())
        .unwrap();
    assert_eq!(
        client.send(none).await.status,
        StatusCode::MISDIRECTED_REQUEST
    );
}

#[tokio::test]
async fn paths_lead_nowhere_else() {
    let names = [
        "..",
        "../..",
        "/",
        "a/../b",
        "%2e%2e",
        "a?b=c#d",
        "a&name=b",
        "\u{0}",
        " ",
        "ü\u{202e}",
    ];
    let mut all = Board::new();
    for name in names {
        all = all.queue(
            name,
            InMemory::new(&dead(&[(&format!("of {name:?}"), "x")])),
        );
    }
    let client = Client::new(all);
    let page = client.get("/").await;
    for (name, link) in names.iter().zip(page.text.split("href=\"/queue?").skip(1)) {
        let link = format!(
            "/queue?{}",
            link.split('"').next().unwrap().replace("&amp;", "&")
        );
        assert_eq!(
            client.get(&link).await.status,
            StatusCode::OK,
            "{name:?}: {link}"
        );
        let link = link.replace("/queue?name=", "/entries?dead=1&queue=");
        client.get(&link).await.shows("1 found");
    }
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/board.css/../../Cargo.toml",
        "/..%2f..%2fetc%2fpasswd",
        "//evil.example/",
        "/\\evil.example",
        "/%00",
        "/board.rs",
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}");
        answer.hides("root:");
    }
}

#[tokio::test]
async fn what_is_too_long_is_refused() {
    let queue = dead(&[]);
    let client = logged_in(&queue).await;
    let long = "x".repeat(65 * 1024);
    for address in ["/login", "/confirm", "/change"] {
        let answer = client.post(address, &[("token", &long)]).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{address}");
    }
    let text = "y".repeat(10_000);
    let page = client
        .get(&format!("/entries?queue=jobs&text={text}"))
        .await;
    assert!(
        page.text.matches("yyyyyyyyyy").count() < 100,
        "the search is cut"
    );
}

#[tokio::test]
async fn bytes_that_are_no_text_are_read_as_some() {
    let queue = dead(&[("a", "x")]);
    let client = logged_in(&queue).await;
    for bytes in [
        "\u{0}",
        "%ff%fe=%c3",
        "a=b=c&&&=",
        "%",
        "%zz",
        "form_token=%00",
    ] {
        let request = client
            .request("POST", "/change")
            .header("origin", "http://localhost:8017");
        assert_eq!(
            client
                .send(request.body(Body::from(bytes)).unwrap())
                .await
                .status,
            StatusCode::FORBIDDEN
        );
    }
    let cookies = [
        "requeue_board",
        "requeue_board==",
        ";;;=;",
        "requeue_boardx=1",
    ];
    for cookie in cookies.map(String::from) {
        Client {
            cookie,
            ..client.clone()
        }
        .get("/")
        .await
        .shows("Log in");
    }
    client
        .get("/entries?queue=%6a%6f%62%73&dead=%ff")
        .await
        .shows("1 found");
}
