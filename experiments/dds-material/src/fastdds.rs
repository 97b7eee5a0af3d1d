//! A participant's configuration for Fast DDS.

use crate::material::{Error, Participant, write};

impl Participant {
    /// The properties that its three built-in plug-ins read, by name.
    pub fn fastdds_properties(&self) -> Vec<(&'static str, String)> {
        let file = |name: &str| format!("file://{}", self.folder().join(name).display());
        vec![
            ("dds.sec.auth.plugin", "builtin.PKI-DH".into()),
            ("dds.sec.auth.builtin.PKI-DH.identity_ca", file("identity_ca.cert.pem")),
            ("dds.sec.auth.builtin.PKI-DH.identity_certificate", file("cert.pem")),
            ("dds.sec.auth.builtin.PKI-DH.private_key", file("key.pem")),
            ("dds.sec.access.plugin", "builtin.Access-Permissions".into()),
            ("dds.sec.access.builtin.Access-Permissions.permissions_ca", file("permissions_ca.cert.pem")),
            ("dds.sec.access.builtin.Access-Permissions.governance", file("governance.p7s")),
            ("dds.sec.access.builtin.Access-Permissions.permissions", file("permissions.p7s")),
            ("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC".into()),
        ]
    }

    /// These properties as the element of a participant's profile.
    pub fn fastdds_property_policy(&self) -> String {
        let property = |(name, value)| format!("<property><name>{name}</name><value>{value}</value></property>\n");
        let properties: String = self.fastdds_properties().into_iter().map(property).collect();
        format!("<propertiesPolicy><properties>\n{properties}</properties></propertiesPolicy>")
    }

    /// Writes `fastdds.xml` into the folder, a default profile of a participant with these properties, and gives its path for
    /// `FASTRTPS_DEFAULT_PROFILES_FILE`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn fastdds(&self) -> Result<std::path::PathBuf, Error> {
        let policy = self.fastdds_property_policy();
        let path = self.folder().join("fastdds.xml");
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<dds xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\">
  <profiles>
    <participant profile_name=\"secured\" is_default_profile=\"true\">
      <rtps>
        {policy}
      </rtps>
    </participant>
  </profiles>
</dds>
"
        );
        write(&path, &text)?;
        Ok(path)
    }
}
