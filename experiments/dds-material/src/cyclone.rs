//! A participant's configuration for Cyclone DDS.

use crate::material::{Error, Participant, write};
use std::path::Path;

impl Participant {
    /// Writes `cyclonedds.xml` into the folder and gives what `CYCLONEDDS_URI` wants: loopback alone, sockets large enough for 1 MiB, the built-in plug-ins; with
    /// `cryptography`, this shared object in place of the built-in one. It must export `init_crypto` and `finalize_crypto`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn cyclone(&self, cryptography: Option<&Path>) -> Result<String, Error> {
        let library = |path: Option<&Path>, init: &str| {
            let path = path.map_or_else(String::new, |path| format!(" path=\"{}\"", path.display()));
            format!("<Library initFunction=\"init_{init}\" finalizeFunction=\"finalize_{init}\"{path}/>")
        };
        let plain = |init: &str, name: &str| {
            format!("<Library initFunction=\"init_{init}\" finalizeFunction=\"finalize_{init}\" path=\"{name}\"/>")
        };
        let cryptography = match cryptography {
            Some(path) => library(Some(path), "crypto"),
            None => plain("crypto", "dds_security_crypto"),
        };
        let security = format!(
            "<Security>
      <Authentication>
        {}
        <IdentityCertificate>{}</IdentityCertificate>
        <PrivateKey>{}</PrivateKey>
        <IdentityCA>{}</IdentityCA>
      </Authentication>
      <AccessControl>
        {}
        <PermissionsCA>{}</PermissionsCA>
        <Governance>{}</Governance>
        <Permissions>{}</Permissions>
      </AccessControl>
      <Cryptographic>
        {cryptography}
      </Cryptographic>
    </Security>",
            plain("authentication", "dds_security_auth"),
            self.uri("cert.pem"),
            self.uri("key.pem"),
            self.uri("identity_ca.cert.pem"),
            plain("access_control", "dds_security_ac"),
            self.uri("permissions_ca.cert.pem"),
            self.uri("governance.p7s"),
            self.uri("permissions.p7s"),
        );
        let file = self.folder().join("cyclonedds.xml");
        write(&file, &cyclone_configuration(&security))?;
        Ok(format!("file://{}", file.display()))
    }
}

/// The configuration without security, for comparison: the text itself may be given as `CYCLONEDDS_URI`.
pub fn cyclone_configuration(security: &str) -> String {
    format!(
        "<CycloneDDS xmlns=\"https://cdds.io/config\">
  <Domain Id=\"any\">
    <General>
      <Interfaces><NetworkInterface name=\"lo\" multicast=\"false\"/></Interfaces>
      <AllowMulticast>false</AllowMulticast>
    </General>
    <Discovery>
      <ParticipantIndex>auto</ParticipantIndex>
      <MaxAutoParticipantIndex>50</MaxAutoParticipantIndex>
      <Peers><Peer address=\"127.0.0.1\"/></Peers>
    </Discovery>
    <Internal><SocketReceiveBufferSize min=\"default\" max=\"4MB\"/></Internal>
    {security}
  </Domain>
</CycloneDDS>
"
    )
}
