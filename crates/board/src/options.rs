//! The arguments of the program.

use std::net::SocketAddr;

pub(crate) const USAGE: &str = "\
Shows queues on a web page.

    requeue-board postgres://USER@HOST/DATABASE   the queues of requeue-postgres
    requeue-board STORE                           the queues in a folder of requeue-durable that no process has open
    requeue-board --demo                          queues in memory that work and fail

    --listen ADDRESS   where to listen: 127.0.0.1:8017 by default
    --host NAME        a name by which browsers reach it, besides localhost
    --write TOKEN      allows changes to those who show this token, of 12 letters at least.
                       Others see it in the list of processes: REQUEUE_BOARD_TOKEN in the environment is the same

An address that other machines reach needs a token, and shows nothing without it.
";

/// The shortest token.
const SHORTEST: usize = 12;

/// What the program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) hosts: Vec<String>,
    pub(crate) token: Option<String>,
    /// What to show: the demo if there is none.
    pub(crate) url: Option<String>,
}

impl Options {
    /// Reads arguments. `None` if they ask for help.
    pub(crate) fn read(
        mut arguments: impl Iterator<Item = String>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let mut options = Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8017)),
            hosts: Vec::new(),
            token: environment("REQUEUE_BOARD_TOKEN"),
            url: None,
        };
        let mut demo = false;
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--help" | "-h" => return Ok(None),
                "--demo" => demo = true,
                "--listen" => {
                    let address = value()?;
                    let parsed = address.parse();
                    options.listen =
                        parsed.map_err(|_| format!("{address:?} is no address with a port"))?;
                }
                "--host" => options.hosts.push(value()?),
                "--write" => options.token = Some(value()?),
                flag if flag.starts_with("--") => return Err(format!("unknown: {flag}")),
                _ if options.url.is_some() => return Err(format!("one too many: {argument}")),
                _ => options.url = Some(argument),
            }
        }
        if demo == options.url.is_some() {
            return Err("either --demo or what to show".into());
        }
        options.check_token()?;
        Ok(Some(options))
    }

    fn check_token(&self) -> Result<(), String> {
        match &self.token {
            Some(token) if token.len() < SHORTEST => {
                Err(format!("the token is shorter than {SHORTEST} letters"))
            }
            None if self.is_open() => Err(format!(
                "{} needs a token, since other machines may reach it",
                self.listen
            )),
            _ => Ok(()),
        }
    }

    /// Whether other machines may reach it.
    pub(crate) fn is_open(&self) -> bool {
        !self.listen.ip().is_loopback()
    }
}

pub(crate) fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://") || url.contains("dbname=")
}

#[cfg(test)]
mod tests {
    use super::Options;

    fn read(line: &str) -> Result<Option<Options>, String> {
        Options::read(line.split_whitespace().map(Into::into), |_| None)
    }

    #[test]
    fn it_listens_to_this_machine() {
        let options = read("--demo").unwrap().unwrap();
        assert!(options.listen.ip().is_loopback());
        assert_eq!(options.token, None);
    }

    #[test]
    fn other_machines_need_a_token() {
        for address in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
            assert!(read(&format!("--demo --listen {address}")).is_err());
            assert!(read(&format!("--demo --listen {address} --write too-short")).is_err());
            let options = read(&format!(
                "--demo --listen {address} --write long-enough-token"
            ));
            assert!(options.unwrap().unwrap().is_open());
        }
        let token =
            |name: &str| (name == "REQUEUE_BOARD_TOKEN").then(|| "long-enough-token".to_owned());
        let options = Options::read(["--demo".to_owned()].into_iter(), token)
            .unwrap()
            .unwrap();
        assert_eq!(options.token.as_deref(), Some("long-enough-token"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, part) in [
            ("", "either --demo"),
            ("--demo store", "either --demo"),
            ("a b", "one too many: b"),
            ("--listen", "--listen needs a value"),
            ("--listen here a", "\"here\" is no address"),
            ("--wirte x", "unknown: --wirte"),
        ] {
            let error = read(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
        assert_eq!(read("--help x"), Ok(None));
    }
}
