import java.io.ByteArrayInputStream;
import java.io.StringReader;
import java.lang.reflect.Method;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.security.Provider;
import java.text.DecimalFormatSymbols;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Hashtable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.jar.Attributes;
import java.util.jar.Manifest;
import java.util.logging.Logger;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.Checksum;
import java.util.zip.ZipEntry;
import javax.management.ImmutableDescriptor;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanInfo;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeType;
import javax.management.openmbean.OpenMBeanParameterInfoSupport;
import javax.management.openmbean.OpenType;
import javax.management.openmbean.SimpleType;
import javax.security.auth.x500.X500Principal;
import javax.xml.namespace.QName;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.stream.StreamSource;
import org.xml.sax.InputSource;

/**
 * Hashes [SECRETS [SEED]]: passes secrets to the JDK classes that store hashes of content. Prints a line for each hash: HASH and the
 * number. Then prints one READY, and waits without changing anything.
 */
public class Hashes {
    static final List<Object> KEPT = new ArrayList<>();
    static final Map<Object, Object> MAP = new HashMap<>();
    static final Map<Object, Object> LINKED = new LinkedHashMap<>();
    static final Map<Object, Object> CONCURRENT = new ConcurrentHashMap<>();
    static final Map<Object, Object> TABLE = new Hashtable<>();
    static final Map<Object, Object> WEAK = new WeakHashMap<>();
    static final Set<Object> SET = new HashSet<>();
    static final Properties PROPERTIES = new Properties();
    static final StringBuilder OUT = new StringBuilder();

    interface Source {
        Object make(String secret) throws Throwable;
    }

    static void hash(long hash) {
        OUT.append("HASH ").append(hash).append('\n');
    }

    /** Creates an object that stores its hash code, keeps the object, and outputs the hash code. Does nothing if this JDK lacks the class. */
    static void keep(String secret, Source source) {
        try {
            Object made = source.make(secret);
            KEPT.add(made);
            hash(made.hashCode());
        } catch (Throwable e) {
            if (System.getProperty("heapdiff.failures") != null) {
                System.err.println(e);
            }
        }
    }

    static Object checksum(Checksum checksum, String secret) {
        byte[] bytes = secret.getBytes(StandardCharsets.UTF_8);
        checksum.update(bytes, 0, bytes.length);
        hash(checksum.getValue());
        return checksum;
    }

    static void keepAll(String secret) {
        hash(secret.hashCode());
        hash(secret.toLowerCase(Locale.ROOT).hashCode());
        hash(secret.toUpperCase(Locale.ROOT).hashCode());
        for (Map<Object, Object> map : listOf(MAP, LINKED, CONCURRENT, TABLE, WEAK)) {
            map.put(secret, secret);
        }
        KEPT.add(secret);
        SET.add(secret);
        PROPERTIES.put(secret, secret);
        System.setProperty("app." + secret, secret);
        hash(("app." + secret).hashCode());
        keep(secret, s -> new URL("file:/" + s));
        keep(secret, s -> URI.create("https://example.org/" + s));
        keep(secret, s -> Paths.get(s));
        keep(secret, s -> new Locale("en", "", s));
        keep(secret, Attributes.Name::new);
        keep(secret, s -> {
            String manifest = "Manifest-Version: 1.0\n" + s + ": " + s + "\n\n";
            return new Manifest(new ByteArrayInputStream(manifest.getBytes(StandardCharsets.UTF_8)));
        });
        keep(secret, s -> new ImmutableDescriptor(s + "=" + s));
        keep(secret, s -> new MBeanInfo(s, s, null, null, null, null));
        keep(secret, s -> new MBeanAttributeInfo(s, s, s, true, false, false));
        keep(secret, s -> new ObjectName("app:name=" + s));
        keep(secret, s -> {
            String[] one = {s};
            return new CompositeType(s, s, one, one, new OpenType<?>[] {SimpleType.STRING});
        });
        keep(secret, s -> new OpenMBeanParameterInfoSupport(s, s, SimpleType.STRING));
        keep(secret, s -> new X500Principal("CN=" + s));
        keep(secret, s -> new QName("urn:" + s, s));
        keep(secret, Logger::getLogger);
        keep(secret, s -> {
            DecimalFormatSymbols symbols = new DecimalFormatSymbols(Locale.ROOT);
            symbols.setNaN(s);
            return symbols;
        });
        keep(secret, s -> new Provider(s, 1.0, s) {
            {
                put("MessageDigest." + s, s);
                getService("MessageDigest", s);
                hash(("MessageDigest." + s).hashCode());
                hash(s.toUpperCase(Locale.ENGLISH).hashCode());
            }
        });
        keep(secret, s -> {
            ZipEntry entry = new ZipEntry(s);
            CRC32 crc = new CRC32();
            KEPT.add(checksum(crc, s));
            entry.setCrc(crc.getValue());
            return entry;
        });
        keep(secret, s -> checksum(new Adler32(), s));
        keep(secret, s -> checksum((Checksum) Class.forName("java.util.zip.CRC32C").getConstructor().newInstance(), s));
        keep(secret, s -> Class.forName("java.awt.Font")
                .getConstructor(String.class, int.class, int.class).newInstance(s, 0, 12));
        keep(secret, s -> {
            Class<?> builder = Class.forName("java.lang.classfile.constantpool.ConstantPoolBuilder");
            Object pool = builder.getMethod("of").invoke(null);
            Method entry = builder.getMethod("utf8Entry", String.class);
            KEPT.add(pool);
            return entry.invoke(pool, s);
        });
    }

    /** Parses XML in which the names of elements and attributes are secrets. Parsers store the hashes of such names in tables. */
    static void parse(String secret) {
        keep(secret, s -> {
            String xml = "<" + s + " " + s + "='" + s + "'/>";
            return DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(new InputSource(new StringReader(xml)));
        });
        keep(secret, s -> {
            String sheet = "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>"
                    + "<xsl:template name='" + s + "'><xsl:value-of select='" + s + "'/></xsl:template></xsl:stylesheet>";
            return TransformerFactory.newInstance().newTemplates(new StreamSource(new StringReader(sheet)));
        });
        keep(secret, s -> Class.forName("javax.xml.xpath.XPathFactory").getMethod("newInstance").invoke(null));
    }

    @SafeVarargs
    static <T> List<T> listOf(T... all) {
        return java.util.Arrays.asList(all);
    }

    public static void main(String[] args) throws Exception {
        int secrets = args.length > 0 ? Integer.parseInt(args[0]) : 100;
        Random random = new Random(args.length > 1 ? Long.parseLong(args[1]) : 36);
        for (int i = 0; i < secrets; i++) {
            StringBuilder secret = new StringBuilder("K");
            while (secret.length() < 8) {
                secret.append((char) ('a' + random.nextInt(26)));
            }
            keepAll(secret.toString());
            if (i < 20) {
                parse(secret.toString());
            }
        }
        System.out.print(OUT);
        System.out.println("READY 1");
        System.out.flush();
        System.in.read();
    }
}
