//! Packages of the JDK and of frameworks, servers and language runtimes. The agent, the reports and the HTML pages use
//! these lists.
//!
//! The functions take class names as in Java source, or strings that begin with one, such as frames.

/// Prefixes of the names of JDK classes.
pub const JDK: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// Prefixes of the class names of frameworks, servers and language runtimes. Some of these prefixes begin with a prefix
/// in [`JDK`].
pub const FRAMEWORKS: [&str; 51] = [
    "akka.",
    "ch.qos.logback.",
    "clojure.",
    "com.fasterxml.jackson.",
    "com.google.inject.",
    "com.zaxxer.hikari.",
    "feign.",
    "graphql.",
    "groovy.",
    "io.grpc.",
    "io.helidon.",
    "io.micrometer.",
    "io.micronaut.",
    "io.netty.",
    "io.opentelemetry.",
    "io.quarkus.",
    "io.reactivex.",
    "io.smallrye.",
    "io.undertow.",
    "io.vertx.",
    "jakarta.",
    "javax.servlet.",
    "kotlin.",
    "kotlinx.",
    "net.bytebuddy.",
    "okhttp3.",
    "okio.",
    "org.apache.catalina.",
    "org.apache.coyote.",
    "org.apache.cxf.",
    "org.apache.groovy.",
    "org.apache.jasper.",
    "org.apache.logging.",
    "org.apache.maven.",
    "org.apache.pekko.",
    "org.apache.tomcat.",
    "org.aspectj.",
    "org.codehaus.groovy.",
    "org.eclipse.jetty.",
    "org.glassfish.",
    "org.hibernate.",
    "org.jboss.",
    "org.junit.",
    "org.slf4j.",
    "org.springframework.",
    "org.testng.",
    "org.wildfly.",
    "org.xnio.",
    "play.",
    "reactor.",
    "scala.",
];

/// True if a name begins with a package of the JDK.
///
/// ```
/// # use heapdiff_sites::packages::is_jdk;
/// assert!(is_jdk("java.util.HashMap.put(HashMap.java:612)"));
/// assert!(!is_jdk("jakarta.servlet.http.HttpServlet"));
/// ```
#[must_use]
pub fn is_jdk(name: &str) -> bool {
    JDK.iter().any(|package| name.starts_with(package))
}

/// True if a class name begins with a package of a known framework.
#[must_use]
pub fn is_framework(name: &str) -> bool {
    FRAMEWORKS.iter().any(|package| name.starts_with(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_sorted_and_end_with_a_dot() {
        assert!(FRAMEWORKS.is_sorted());
        let mut all = FRAMEWORKS.iter().chain(&JDK);
        assert!(all.all(|package| package.ends_with('.')));
    }
}
