import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.inprocess.InProcessChannelBuilder;

/** grpc-java-5283. */
public class Grpc {
    static class Interceptor implements ClientInterceptor {
        ManagedChannel channel;

        @Override
        public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
            return next.newCall(method, options);
        }
    }

    public static void main(String[] args) throws Exception {
        Dumps.around(args, 50, number -> {
            Interceptor interceptor = new Interceptor();
            interceptor.channel = InProcessChannelBuilder.forName("x").intercept(interceptor).build();
        });
    }
}
