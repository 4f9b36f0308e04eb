import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.retry.annotation.AnnotationAwareRetryOperationsInterceptor;
import org.springframework.retry.annotation.Retryable;

/** Calls short-lived objects through Spring Retry's interceptor, as beans of scope prototype are called. */
class Imports {
    private static final int IMPORTS = 1_500;

    /** The interface of the calls. */
    public interface Import {
        int run();
    }

    /** An import whose method is called again if it fails. */
    public static class FileImport implements Import {
        private final long[] rows = new long[50];

        @Override
        @Retryable
        public int run() {
            return rows.length;
        }
    }

    private final AnnotationAwareRetryOperationsInterceptor retry = new AnnotationAwareRetryOperationsInterceptor();
    private int rows;

    private void work() throws InterruptedException {
        for (int i = 0; i < IMPORTS; i++) {
            ProxyFactory factory = new ProxyFactory(new FileImport());
            factory.addAdvisor(new DefaultPointcutAdvisor(retry));
            rows += ((Import) factory.getProxy(Import.class.getClassLoader())).run();
        }
        System.gc();
        Thread.sleep(300);
        ProxyFactory factory = new ProxyFactory(new FileImport());
        factory.addAdvisor(new DefaultPointcutAdvisor(retry));
        rows += ((Import) factory.getProxy(Import.class.getClassLoader())).run();
    }

    public static void main(String[] args) throws Exception {
        Imports program = new Imports();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
