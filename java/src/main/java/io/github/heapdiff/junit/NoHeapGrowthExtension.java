package io.github.heapdiff.junit;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Optional;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.junit.jupiter.api.function.Executable;
import org.junit.platform.commons.support.AnnotationSupport;

/** Runs a test method with the annotation {@link NoHeapGrowth} in rounds. */
final class NoHeapGrowthExtension implements InvocationInterceptor {
    @Override
    public void interceptTestMethod(
            Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context)
            throws Throwable {
        intercept(invocation, method, context);
    }

    @Override
    public void interceptTestTemplateMethod(
            Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context)
            throws Throwable {
        intercept(invocation, method, context);
    }

    private static void intercept(
            Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context)
            throws Throwable {
        Rounds rounds = new Rounds(invocation, method);
        try {
            Heap.assertNoGrowth(options(method), rounds);
        } finally {
            // Skip this invocation explicitly, because JUnit requires that each invocation is either run or skipped.
            rounds.skipUnlessRun();
        }
    }

    private static GrowthOptions options(ReflectiveInvocationContext<Method> method) {
        Optional<NoHeapGrowth> found = AnnotationSupport.findAnnotation(method.getExecutable(), NoHeapGrowth.class);
        Class<?> type = method.getTargetClass();
        while (found.isEmpty() && type != null) {
            found = AnnotationSupport.findAnnotation(type, NoHeapGrowth.class);
            type = type.getEnclosingClass();
        }
        GrowthOptions options = GrowthOptions.defaults();
        return found.map(stated -> options.withRounds(stated.rounds())
                        .withWarmUp(stated.warmUp())
                        .withMinGrowingShare(stated.minGrowingShare())
                        .withToleratedBytes(stated.toleratedBytes()))
                .orElse(options);
    }

    /**
     * The rounds of one test. JUnit's invocation can run only once, so only the first round uses it. Later rounds call
     * the method.
     */
    private static final class Rounds implements Executable {
        private final Invocation<Void> first;
        private final ReflectiveInvocationContext<Method> method;
        private boolean begun;

        Rounds(Invocation<Void> first, ReflectiveInvocationContext<Method> method) {
            this.first = first;
            this.method = method;
        }

        @Override
        public void execute() throws Throwable {
            if (!begun) {
                begun = true;
                first.proceed();
                return;
            }
            Method executable = method.getExecutable();
            executable.setAccessible(true);
            try {
                executable.invoke(method.getTarget().orElse(null), method.getArguments().toArray());
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }

        void skipUnlessRun() {
            if (!begun) {
                first.skip();
            }
        }
    }
}
