import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** spring-boot-29874. */
public class Boot {
    @Configuration
    static class Failing {
        @Bean
        Object failing() {
            throw new IllegalStateException("failing");
        }
    }

    public static void main(String[] args) throws Exception {
        Dumps.around(args, 5, number -> {
            SpringApplication application = new SpringApplication(Failing.class);
            application.setWebApplicationType(WebApplicationType.NONE);
            application.setRegisterShutdownHook(true);
            try {
                application.run();
            } catch (RuntimeException expected) {
                // The context is not started.
            }
        });
    }
}
