import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntSupplier;

/** Defines classes in loaders that stay alive and in loaders that are dropped. Also defines hidden classes, lambdas and proxies. */
public class Loaders {
    static final List<Object> kept = new ArrayList<>();

    static class Plugin {}

    static class PluginLoader extends ClassLoader {
        PluginLoader() { super(Loaders.class.getClassLoader()); }

        Class<?> define(byte[] b) { return defineClass(null, b, 0, b.length); }
    }

    static void deploy(byte[] b) { kept.add(new PluginLoader().define(b)); }

    static void deployAndForget(byte[] b) { new PluginLoader().define(b); }

    static void hide(byte[] b) throws Exception {
        kept.add(MethodHandles.lookup().defineHiddenClass(b, false).lookupClass());
    }

    static void lambda(int i) {
        IntSupplier s = () -> i;
        kept.add(s);
    }

    static void proxy() {
        InvocationHandler nothing = (p, m, a) -> null;
        kept.add(Proxy.newProxyInstance(new PluginLoader(), new Class<?>[] {Runnable.class}, nothing));
    }

    public static void main(String[] args) throws Exception {
        byte[] b;
        try (InputStream in = Loaders.class.getResourceAsStream("Loaders$Plugin.class")) {
            b = in.readAllBytes();
        }
        for (int i = 0; i < 30; i++) deploy(b);
        for (int i = 0; i < 40; i++) deployAndForget(b);
        for (int i = 0; i < 20; i++) hide(b);
        for (int i = 0; i < 10; i++) lambda(i);
        proxy();
        System.out.println("READY 1");
        System.in.read();
        System.gc();
        Thread.sleep(1500);
        System.out.println("READY 2");
        System.in.read();
    }
}
