//! The servers, configured as their distribution would, one worker each, a port for each key.

use crate::stage::{HOST, Key, PAGES, Stage, free_ports};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A server program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    /// One process, one thread, events.
    Nginx,
    /// One process, one thread, events.
    Haproxy,
    /// The same, which runs handshakes as OpenSSL's asynchronous jobs (`ssl-mode-async`).
    HaproxyAsync,
    /// Two processes of 64 threads, each thread one connection: the nearest to the paper's Apache 1.3.
    Apache,
}

/// How a server makes pages that are not files.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// It passes requests for `/db` on to an HTTP server at this port.
    Proxy(u16),
    /// It starts a program for each request for `/cgi` (RFC 3875), with these variables.
    Cgi { program: PathBuf, variables: Vec<(&'static str, String)> },
}

/// What a port offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Offer {
    /// Pages, under this key.
    Pages(Key),
    /// The same, RSA-2048, to clients with a certificate only.
    ClientsWithCertificate,
}

/// A configured server, ready to be started.
pub(crate) struct Site {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) ports: BTreeMap<Offer, u16>,
}

impl Server {
    /// Those that are compared with each other.
    pub(crate) const ALL: [Self; 3] = [Self::Nginx, Self::Haproxy, Self::Apache];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::HaproxyAsync => "haproxy-async",
            _ => self.package(),
        }
    }

    /// The program's name, and its package's.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy | Self::HaproxyAsync => "haproxy",
            Self::Apache => "apache2",
        }
    }

    /// Where the program is, if it is installed.
    pub(crate) fn program(self) -> Option<PathBuf> {
        let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"];
        folders.iter().map(|folder| Path::new(folder).join(self.package())).find(|path| path.is_file())
    }

    /// Writes its configuration into a folder of its own. nginx can pass requests on, Apache start programs.
    pub(crate) fn configure(self, stage: &Stage, folder: &str, way: Option<&Way>) -> Result<Site> {
        let program = self.program().ok_or_else(|| Error(format!("no {} here: apt-get install {0}", self.package())))?;
        let folder = stage.make_folder(folder)?;
        let offers = Key::ALL.map(Offer::Pages).into_iter().chain([Offer::ClientsWithCertificate]);
        let ports: BTreeMap<Offer, u16> = offers.zip(free_ports::<{ Key::ALL.len() + 1 }>()?).collect();
        let file = folder.join(format!("{}.conf", self.name()));
        let text = match self {
            Self::Nginx => nginx(stage, &folder, &ports, way),
            Self::Haproxy => haproxy(stage, &ports, ""),
            Self::HaproxyAsync => haproxy(stage, &ports, "    ssl-mode-async\n"),
            Self::Apache => apache(stage, &folder, &ports, way),
        };
        stage.write(&file, text.as_bytes())?;
        let file = file.display().to_string();
        let arguments: &[&str] = match self {
            Self::Nginx => &["-c", &file],
            Self::Haproxy | Self::HaproxyAsync => &["-db", "-f", &file],
            Self::Apache => &["-f", &file, "-DFOREGROUND"],
        };
        Ok(Site { program, arguments: arguments.iter().map(ToString::to_string).collect(), ports })
    }
}

fn file_of(offer: Offer) -> &'static str {
    match offer {
        Offer::Pages(key) => key.file(),
        Offer::ClientsWithCertificate => Key::Rsa2048.file(),
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn nginx(stage: &Stage, folder: &Path, ports: &BTreeMap<Offer, u16>, way: Option<&Way>) -> String {
    let (folder, user) = (folder.display(), if is_root() { "user www-data;" } else { "" });
    let root = stage.path("www").display().to_string();
    let mut text = format!(
        "daemon off;\n{user}\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log warn;\n\
         events {{ worker_connections 4096; }}\nhttp {{\naccess_log off; types {{ }} default_type application/octet-stream;\n\
         client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c; uwsgi_temp_path {folder}/d; \
         scgi_temp_path {folder}/e;\nssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:s:10m; root {root};\n"
    );
    if let Some(Way::Proxy(port)) = way {
        let _ = writeln!(text, "upstream db {{ server 127.0.0.1:{port}; keepalive 64; }}");
    }
    for (&offer, port) in ports {
        let name = file_of(offer);
        let [certificate, key] = ["pem", "key"].map(|suffix| stage.path(&format!("{name}.{suffix}")).display().to_string());
        let _ = write!(
            text,
            "server {{ listen 127.0.0.1:{port} ssl backlog=4096; server_name {HOST}; ssl_certificate {certificate}; \
             ssl_certificate_key {key};"
        );
        if offer == Offer::ClientsWithCertificate {
            let _ = write!(text, " ssl_client_certificate {}; ssl_verify_client on;", stage.path("ca.pem").display());
        }
        if let Some(Way::Proxy(_)) = way {
            text.push_str(" location /db { proxy_pass http://db; proxy_http_version 1.1; proxy_set_header Connection \"\"; }");
        }
        text.push_str(" }\n");
    }
    text + "}\n"
}

/// It serves the smallest page from memory, since it has no files to serve.
fn haproxy(stage: &Stage, ports: &BTreeMap<Offer, u16>, more: &str) -> String {
    let page = stage.path("www").join(PAGES[0].to_string());
    let mut text = format!(
        "global\n    nbthread 1\n    maxconn 4096\n    ssl-default-bind-options ssl-min-ver TLSv1.2\n{more}defaults\n    mode http\n    \
         timeout connect 5s\n    timeout client 20s\n    timeout server 20s\nfrontend tls\n"
    );
    for (&offer, port) in ports {
        let both = stage.path(&format!("{}.both", file_of(offer))).display().to_string();
        let _ = write!(text, "    bind 127.0.0.1:{port} backlog 4096 ssl crt {both}");
        if offer == Offer::ClientsWithCertificate {
            let _ = write!(text, " ca-file {} verify required", stage.path("ca.pem").display());
        }
        text.push('\n');
    }
    let _ = writeln!(text, "    http-request return status 200 content-type application/octet-stream file {}", page.display());
    text
}

fn apache(stage: &Stage, folder: &Path, ports: &BTreeMap<Offer, u16>, way: Option<&Way>) -> String {
    let (folder, root) = (folder.display(), stage.path("www").display().to_string());
    let user = if is_root() { "User www-data\nGroup www-data\n" } else { "" };
    let mut modules = vec!["mpm_event", "authz_core", "ssl", "socache_shmcb"];
    let mut scripts = String::new();
    if let Some(Way::Cgi { program, variables }) = way {
        // Not `cgid`, which threads usually have: its daemon takes no note of how its scripts end, and with that the kernel forgets what they cost.
        modules.extend(["alias", "cgi", "env"]);
        let program = program.display();
        let _ = write!(scripts, "ScriptAlias /cgi {program}\n<Location /cgi>\nRequire all granted\n</Location>\n");
        // Without this Apache drops a script's Content-Length, and sends in chunks what does not come at once.
        scripts.push_str("SetEnv ap_trust_cgilike_cl 1\n");
        for (name, value) in variables {
            let _ = writeln!(scripts, "SetEnv {name} {value}");
        }
    }
    let load = |module: &&str| format!("LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n");
    let modules: String = modules.iter().map(load).collect();
    let mut text = format!(
        "ServerRoot {folder}\nServerName {HOST}\nPidFile {folder}/pid\nErrorLog {folder}/error.log\nDefaultRuntimeDir {folder}\n{modules}{user}\
         StartServers 2\nServerLimit 2\nThreadsPerChild 64\nThreadLimit 64\nMaxRequestWorkers 128\nMinSpareThreads 128\nMaxSpareThreads 128\n\
         ListenBacklog 4096\nSSLSessionCache shmcb:{folder}/sessions(10485760)\nDocumentRoot {root}\n<Directory {root}>\nRequire all granted\n\
         </Directory>\n{scripts}"
    );
    for (&offer, port) in ports {
        let name = file_of(offer);
        let [certificate, key] = ["pem", "key"].map(|suffix| stage.path(&format!("{name}.{suffix}")).display().to_string());
        let _ = write!(
            text,
            "Listen 127.0.0.1:{port}\n<VirtualHost 127.0.0.1:{port}>\nSSLEngine on\nSSLProtocol -all +TLSv1.2 +TLSv1.3\n\
             SSLCertificateFile {certificate}\nSSLCertificateKeyFile {key}\n"
        );
        if offer == Offer::ClientsWithCertificate {
            let _ = write!(text, "SSLVerifyClient require\nSSLCACertificateFile {}\n", stage.path("ca.pem").display());
        }
        text.push_str("</VirtualHost>\n");
    }
    text
}
