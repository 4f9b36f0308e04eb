import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;

/**
 * Watched MB: keeps MB megabytes, allocates garbage and runs GCs, and prints what the JVM's MXBeans report about them. Does the same again
 * for each line of input.
 */
public class Watched {
    static Object[] kept;
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        int mb = Integer.parseInt(args[0]);
        for (int phase = 1; phase <= 50; phase++) {
            kept = new Object[mb];
            for (int i = 0; i < mb; i++) {
                kept[i] = new byte[1 << 20];
                for (int j = 0; j < 2000; j++) sink = new byte[1000];
            }
            System.gc();
            Thread.sleep(100);
            System.gc();
            Thread.sleep(700);
            StringBuilder beans = new StringBuilder("BEANS");
            for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans())
                beans.append(';').append(bean.getName()).append('=').append(bean.getCollectionCount());
            System.out.println(beans);
            long metaspace = 0;
            for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans())
                if (pool.getName().equals("Metaspace")) metaspace = pool.getUsage().getUsed();
            System.out.println("USED;" + ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed() + ";"
                    + metaspace + ";" + ManagementFactory.getClassLoadingMXBean().getLoadedClassCount());
            System.out.println("READY " + phase);
            if (System.in.read() < 0) return;
        }
    }
}
