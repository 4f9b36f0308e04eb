//! Help on the options of the agent, for the commands that load it.

use heapdiff_sites::attach::KEYS;

/// Returns a help text: the given examples, the options of the agent, and where heapdiff finds the agent library.
pub(super) fn agent_help(examples: &str) -> String {
    let mut text = format!("{examples}\n\nAgent options:\n");
    for (key, meaning) in KEYS {
        text += &format!("  {key:<11} {meaning}\n");
    }
    text + FILTER_HELP + AGENT_HELP
}

const FILTER_HELP: &str = r"
The options `include` and `exclude` are compared with two classes: the class of the object, and the
class whose code allocates the object (the innermost frame outside the JDK). For example,
include=^com\.pet\. also samples a byte[] that the JDK allocates in a call from com.pet.

";

const AGENT_HELP: &str = "\
heapdiff uses the first agent library (libheapdiff_agent.so) that it finds: --agent, the environment
variable HEAPDIFF_AGENT, a library next to the executable, or the one embedded in it. If the JVM
cannot read this library, heapdiff copies the library to the JVM's /tmp or another folder.

The agent stays loaded until the JVM ends. Run `heapdiff attach` again to change the options of the
agent, and `heapdiff detach` to stop the agent. JDK 21 and later print a warning about agents,
unless the JVM was started with -XX:+EnableDynamicAgentLoading.";
