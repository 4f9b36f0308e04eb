import com.sun.management.HotSpotDiagnosticMXBean;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/**
 * {@code java Streams DUMP SEED}: creates random numbers of Reactor subscriptions and Netty channels, prints the expected
 * groups (kind, number, lines), and writes a heap dump. The lines are parts of the group's lines, in order.
 */
public class Streams {
    static final List<Object> KEPT = new ArrayList<>();

    static class Decoder extends ChannelInboundHandlerAdapter {}

    static class Orders extends ChannelInboundHandlerAdapter {}

    static class Encoder extends ChannelInboundHandlerAdapter {}

    interface Chain {
        void subscribe();
    }

    static void expect(int count, Chain chain, String... lines) {
        for (int i = 0; i < count; i++) {
            chain.subscribe();
        }
        if (count > 0) {
            System.out.println("subscriptions\t" + count + "\t" + String.join("\t", lines));
        }
    }

    static Mono<String> never() {
        Sinks.One<String> sink = Sinks.one();
        KEPT.add(sink);
        return sink.asMono();
    }

    static Flux<String> endless() {
        Sinks.Many<String> sink = Sinks.many().unicast().onBackpressureBuffer();
        KEPT.add(sink);
        return sink.asFlux();
    }

    static void channels(int count, ChannelHandler... handlers) throws Exception {
        StringBuilder line = new StringBuilder("pipelines\t" + count + "\tEmbeddedChannel");
        for (ChannelHandler handler : handlers) {
            line.append('\t').append(handler.getClass().getName());
        }
        for (int i = 0; i < count; i++) {
            ChannelHandler[] own = new ChannelHandler[handlers.length];
            for (int at = 0; at < own.length; at++) {
                own[at] = handlers[at].getClass().getDeclaredConstructor().newInstance();
            }
            KEPT.add(new EmbeddedChannel(own));
        }
        System.out.println(line);
    }

    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[1]));
        expect(random.nextInt(40), () -> never().map(String::length).subscribe(KEPT::add), "Map", "LambdaMonoSubscriber Streams$$Lambda");
        expect(
                random.nextInt(40),
                () -> never().map(String::length).filter(x -> x > 3).map(x -> x + 1).subscribe(KEPT::add),
                "Map", "Filter", "Map", "LambdaMonoSubscriber Streams$$Lambda");
        expect(
                random.nextInt(40),
                () -> endless().map(String::trim).buffer(10).subscribe(KEPT::add),
                "Map", "Buffer", "LambdaSubscriber Streams$$Lambda");
        expect(
                random.nextInt(40),
                () -> endless().take(1000).scan((a, b) -> a + b).subscribe(KEPT::add),
                "Limit", "Scan", "LambdaSubscriber Streams$$Lambda");
        channels(1 + random.nextInt(40), new Decoder(), new Orders(), new Encoder());
        channels(1 + random.nextInt(40), new Decoder(), new Orders());
        channels(1 + random.nextInt(40), new Orders(), new Decoder());
        ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).dumpHeap(args[0], true);
        System.exit(0);
    }
}
