//! Requests without a network, and what forms contain.

use axum::body::{to_bytes, Body};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::Router;
use requeue::Queue;
use requeue_board::{Board, InMemory};
use tower::ServiceExt;

pub(crate) const TOKEN: &str = "correct horse battery";

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// The value of a field of a form.
    pub(crate) fn field(&self, name: &str) -> String {
        let begin = format!("name=\"{name}\" value=\"");
        let (_, rest) = self
            .text
            .split_once(&begin)
            .unwrap_or_else(|| panic!("no field {name}: {}", self.text));
        rest.split_once('"').unwrap().0.into()
    }

    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> &Self {
        assert!(
            self.text.contains(text),
            "{text:?} is missing: {}",
            self.text
        );
        self
    }

    #[track_caller]
    pub(crate) fn hides(&self, text: &str) -> &Self {
        assert!(
            !self.text.contains(text),
            "{text:?} is there: {}",
            self.text
        );
        self
    }
}

/// A browser, with the cookie of its session.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) board: Router,
    pub(crate) cookie: String,
}

impl Client {
    pub(crate) fn new(board: Board) -> Self {
        let (board, cookie) = (board.into_router(), String::new());
        Self { board, cookie }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.board.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let text = to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: head.status,
            headers: head.headers,
            text: String::from_utf8(text.to_vec()).unwrap(),
        }
    }

    pub(crate) fn request(&self, method: &str, address: &str) -> axum::http::request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(address)
            .header("host", "localhost:8017");
        request.header("cookie", &self.cookie)
    }

    pub(crate) async fn get(&self, address: &str) -> Answer {
        self.send(self.request("GET", address).body(Body::empty()).unwrap())
            .await
    }

    pub(crate) async fn post(&self, address: &str, fields: &[(&str, &str)]) -> Answer {
        let request = self
            .request("POST", address)
            .header("origin", "http://localhost:8017");
        self.send(request.body(body(fields)).unwrap()).await
    }

    pub(crate) async fn log_in(&mut self) {
        let answer = self.post("/login", &[("token", TOKEN)]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        self.cookie = answer
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap()
            .into();
    }

    /// What the forms of this session contain.
    pub(crate) async fn form_token(&self) -> String {
        self.get("/").await.field("form_token")
    }

    /// Asks for a change.
    pub(crate) async fn ask(&self, fields: &[(&str, &str)]) -> Answer {
        let token = self.form_token().await;
        let fields: Vec<_> = fields
            .iter()
            .copied()
            .chain([("form_token", token.as_str())])
            .collect();
        self.post("/confirm", &fields).await
    }

    /// Asks for a change, and confirms it.
    pub(crate) async fn change(&self, fields: &[(&str, &str)]) -> Answer {
        let asked = self.ask(fields).await;
        assert_eq!(asked.status, StatusCode::OK, "{}", asked.text);
        let (token, number) = (asked.field("form_token"), asked.field("number"));
        self.post("/change", &[("form_token", &token), ("number", &number)])
            .await
    }
}

pub(crate) fn body(fields: &[(&str, &str)]) -> Body {
    let mut text = form_urlencoded::Serializer::new(String::new());
    Body::from(text.extend_pairs(fields).finish())
}

/// A queue with these dead letters.
pub(crate) fn dead(letters: &[(&str, &str)]) -> Queue<String> {
    let queue = Queue::builder().tracked().build();
    for (item, error) in letters {
        queue.push((*item).to_owned()).unwrap();
        queue.take().unwrap().fail(*error);
    }
    queue
}

/// A board with a queue `jobs`, on which somebody has logged in.
pub(crate) async fn logged_in(queue: &Queue<String>) -> Client {
    let mut client = Client::new(board(queue).token(TOKEN));
    client.log_in().await;
    client
}

pub(crate) fn board(queue: &Queue<String>) -> Board {
    Board::new().queue("jobs", InMemory::new(queue))
}
