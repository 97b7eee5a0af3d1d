//! The two XML documents, before they are signed.

use crate::governance::Governance;

const SCHEMA: &str =
    "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:noNamespaceSchemaLocation=\"http://www.omg.org/spec/DDS-SECURITY/20170901";
/// Certificates and permissions hold this long at most; the documents say so, in a century that every clock is in.
const BEGIN: &str = "2020-01-01T00:00:00";
const END: &str = "2049-12-31T00:00:00";

/// The governance document (DDS Security 1.1 s9.4.1.2).
pub(crate) fn governance(governance: &Governance) -> String {
    let Governance { discovery, liveliness, rtps, metadata, data, .. } = governance;
    let protects_discovery = discovery.word() != "NONE";
    let protects_liveliness = liveliness.word() != "NONE";
    let (discovery, liveliness, rtps, metadata, data) =
        (discovery.word(), liveliness.word(), rtps.word(), metadata.word(), data.word_for_data());
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<dds {SCHEMA}/omg_shared_ca_governance.xsd\">
  <domain_access_rules>
    <domain_rule>
      <domains><id_range><min>0</min><max>230</max></id_range></domains>
      <allow_unauthenticated_participants>false</allow_unauthenticated_participants>
      <enable_join_access_control>true</enable_join_access_control>
      <discovery_protection_kind>{discovery}</discovery_protection_kind>
      <liveliness_protection_kind>{liveliness}</liveliness_protection_kind>
      <rtps_protection_kind>{rtps}</rtps_protection_kind>
      <topic_access_rules>
        <topic_rule>
          <topic_expression>*</topic_expression>
          <enable_discovery_protection>{protects_discovery}</enable_discovery_protection>
          <enable_liveliness_protection>{protects_liveliness}</enable_liveliness_protection>
          <enable_read_access_control>true</enable_read_access_control>
          <enable_write_access_control>true</enable_write_access_control>
          <metadata_protection_kind>{metadata}</metadata_protection_kind>
          <data_protection_kind>{data}</data_protection_kind>
        </topic_rule>
      </topic_access_rules>
    </domain_rule>
  </domain_access_rules>
</dds>
"
    )
}

/// A participant's permissions (s9.4.1.3): all topics, and all partitions by name, for ddsperf's topics are in one and an absent list means the nameless partition alone.
pub(crate) fn permissions(common_name: &str) -> String {
    let anything = "<topics><topic>*</topic></topics><partitions><partition>*</partition></partitions>";
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<dds {SCHEMA}/omg_shared_ca_permissions.xsd\">
  <permissions>
    <grant name=\"{common_name}\">
      <subject_name>CN={common_name}</subject_name>
      <validity><not_before>{BEGIN}</not_before><not_after>{END}</not_after></validity>
      <allow_rule>
        <domains><id_range><min>0</min><max>230</max></id_range></domains>
        <publish>{anything}</publish>
        <subscribe>{anything}</subscribe>
      </allow_rule>
      <default>DENY</default>
    </grant>
  </permissions>
</dds>
"
    )
}
