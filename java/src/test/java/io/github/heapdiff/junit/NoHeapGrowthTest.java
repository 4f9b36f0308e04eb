package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.testkit.engine.EventConditions.event;
import static org.junit.platform.testkit.engine.EventConditions.finishedWithFailure;
import static org.junit.platform.testkit.engine.EventConditions.test;
import static org.junit.platform.testkit.engine.TestExecutionResultConditions.instanceOf;
import static org.junit.platform.testkit.engine.TestExecutionResultConditions.message;

import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.Events;

/** The annotation, on test classes that JUnit runs for these tests only. */
@Timeout(120)
class NoHeapGrowthTest {
    static int calls;

    @BeforeEach
    void reset() {
        Programs.reset();
        calls = 0;
    }

    @Test
    void aMethodThatLeaksFails() {
        Events tests = run(OnMethods.class);
        tests.assertStatistics(counts -> counts.started(3).succeeded(2).failed(1));
        tests.assertThatEvents().haveExactly(1, event(test("leaks"), finishedWithFailure(
                instanceOf(AssertionError.class),
                message(text -> text.contains("Programs.SESSIONS grew by") && text.contains("in 8 rounds")))));
        // One warm-up round, then steps of two.
        assertTrue(calls == 3 || calls == 5, () -> calls + " calls");
    }

    @Test
    void onAClassItHoldsForEachTest() {
        run(OnAClass.class).assertStatistics(counts -> counts.started(4).succeeded(2).failed(2));
    }

    /** Tests of two classes at a time, of which one leaks: what it leaves is in no other test's heap while that is watched. */
    @Test
    void noOtherTestRunsMeanwhile() {
        EngineTestKit.engine("junit-jupiter")
                .configurationParameter("junit.jupiter.execution.parallel.enabled", "true")
                .configurationParameter("junit.jupiter.execution.parallel.mode.default", "concurrent")
                .configurationParameter("junit.jupiter.execution.parallel.mode.classes.default", "concurrent")
                .configurationParameter("junit.jupiter.execution.parallel.config.strategy", "fixed")
                .configurationParameter("junit.jupiter.execution.parallel.config.fixed.parallelism", "4")
                .selectors(selectClass(Leaking.class), selectClass(Watched.class))
                .execute()
                .testEvents()
                .assertStatistics(counts -> counts.started(12).succeeded(12));
    }

    private static Events run(Class<?> tests) {
        return EngineTestKit.engine("junit-jupiter").selectors(selectClass(tests)).execute().testEvents();
    }

    static class Leaking {
        @RepeatedTest(10)
        void leaks() throws InterruptedException {
            for (int i = 0; i < 20; i++) {
                synchronized (Programs.SESSIONS) {
                    Programs.leakSession();
                }
                Thread.sleep(10);
            }
        }
    }

    @NoHeapGrowth
    static class Watched {
        @Test
        void closes() {
            // So long that others would run.
            Watched.work();
        }

        @Test
        void closesAsWell() {
            Watched.work();
        }

        private static void work() {
            int before = Programs.SESSIONS.size();
            for (int i = 0; i < 5; i++) {
                Programs.closeSession();
                LockSupport.parkNanos(2_000_000);
            }
            assertEquals(before, Programs.SESSIONS.size());
        }
    }

    static class OnMethods {
        @Test
        @NoHeapGrowth(rounds = 4, warmUp = 2)
        void leaks() {
            Programs.SESSIONS.add(new byte[2 * Programs.SESSION_BYTES]);
        }

        @Test
        @NoHeapGrowth(rounds = 2, warmUp = 1)
        void counts() {
            calls++;
        }

        @Test
        void leaksUnwatched() {
            Programs.leakSession();
        }
    }

    @NoHeapGrowth
    static class OnAClass {
        @ParameterizedTest
        @ValueSource(booleans = {true, false})
        void keeps(boolean sessions) {
            Programs.leakSession();
            if (!sessions) {
                Programs.SESSIONS.clear();
            }
        }

        @Test
        void leaks() {
            Programs.leakSession();
        }

        @Test
        void closes() {
            Programs.closeSession();
        }
    }
}
