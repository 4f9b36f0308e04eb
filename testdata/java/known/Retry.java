import org.springframework.aop.framework.ProxyFactory;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.retry.annotation.AnnotationAwareRetryOperationsInterceptor;
import org.springframework.retry.annotation.Retryable;

/** spring-retry-141. */
public class Retry {
    public interface Order {
        void place();
    }

    public static class PlacedOrder implements Order {
        final byte[] content = new byte[100];

        @Override
        @Retryable
        public void place() {}
    }

    public static void main(String[] args) throws Exception {
        AnnotationAwareRetryOperationsInterceptor interceptor = new AnnotationAwareRetryOperationsInterceptor();
        Dumps.around(args, 300, number -> {
            ProxyFactory factory = new ProxyFactory(new PlacedOrder());
            factory.addAdvisor(new DefaultPointcutAdvisor(interceptor));
            ((Order) factory.getProxy()).place();
        });
    }
}
