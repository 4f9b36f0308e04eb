import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.ehcache.Cache;
import org.ehcache.CacheManager;
import org.ehcache.config.builders.CacheConfigurationBuilder;
import org.ehcache.config.builders.CacheManagerBuilder;
import org.ehcache.config.builders.ResourcePoolsBuilder;

/** Caches customers in Ehcache, at most 10,000 on the heap: the cache is 60 % full at first, and then full. */
class Customers {
    private static final int CUSTOMERS = 6_000;

    static final class Customer {
        final String name;
        final long[] orders = new long[20];

        Customer(String name) {
            this.name = name;
        }
    }

    private final CacheManager manager = CacheManagerBuilder.newCacheManagerBuilder().build(true);
    private final Cache<Long, Customer> customers = manager.createCache("customers",
            CacheConfigurationBuilder.newCacheConfigurationBuilder(
                    Long.class, Customer.class, ResourcePoolsBuilder.heap(10_000)));
    private long next;

    private void work() {
        for (int i = 0; i < CUSTOMERS; i++) {
            customers.put(++next, new Customer("customer " + next));
        }
    }

    public static void main(String[] args) throws Exception {
        Customers program = new Customers();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= 3; phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
