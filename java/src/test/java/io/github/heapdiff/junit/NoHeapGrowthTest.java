package io.github.heapdiff.junit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.testkit.engine.EventConditions.event;
import static org.junit.platform.testkit.engine.EventConditions.finishedWithFailure;
import static org.junit.platform.testkit.engine.EventConditions.test;
import static org.junit.platform.testkit.engine.TestExecutionResultConditions.instanceOf;
import static org.junit.platform.testkit.engine.TestExecutionResultConditions.message;

import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.junit.platform.testkit.engine.EngineTestKit;
import org.junit.platform.testkit.engine.Events;

/** Tests {@link NoHeapGrowth}. The nested test classes run only inside these tests. */
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
        // The test `counts` runs one warm-up round, and then one or two steps of two rounds each. If the test `leaks` ran before it, ten
        // more rounds follow, and then again one or two steps.
        assertTrue(List.of(3, 5, 3 + 10 + 2, 5 + 10 + 2, 3 + 10 + 4, 5 + 10 + 4).contains(calls), () -> calls + " calls");
    }

    @Test
    void onAClassItAppliesToEachTest() {
        run(OnAClass.class).assertStatistics(counts -> counts.started(4).succeeded(2).failed(2));
    }

    @Test
    void growthInMostRoundsFails() {
        Events tests = run(InMostRounds.class);
        tests.assertStatistics(counts -> counts.started(4).succeeded(1).failed(3));
        tests.assertThatEvents().haveExactly(1, event(test("inEachRound"), finishedWithFailure(
                message(text -> text.startsWith("the heap grows with each round: ")))));
        tests.assertThatEvents().haveExactly(1, event(test("inFourOfFive"), finishedWithFailure(
                message(text -> text.startsWith("the heap grows in 40 of 50 measured rounds: ")))));
        tests.assertThatEvents().haveExactly(1, event(test("inAllButOne"), finishedWithFailure(
                message(text -> text.startsWith("the heap grows in 49 of 50 measured rounds: ")))));
    }

    /** All three repetitions put the same keys into one map. */
    @Test
    void aTestThatAnotherTestWarmedUpFails() {
        run(WarmedUp.class).assertStatistics(counts -> counts.started(3).succeeded(0).failed(3));
    }

    /** Runs the tests of two classes in parallel. One class leaks. Its tests must not run during a check of the other class. */
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
            // The work takes so long that another test would run at the same time if @NoHeapGrowth did not prevent parallel runs.
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

    /** Each test leaks 10 kB in the rounds that its condition selects. Each test uses different keys. */
    static class InMostRounds {
        int round;

        @Test
        @NoHeapGrowth(rounds = 50)
        void inEachRound() {
            put(1_000 + round++);
        }

        @Test
        @NoHeapGrowth(rounds = 50)
        void inFourOfFive() {
            if (round++ % 5 != 0) {
                put(2_000 + round);
            }
        }

        @Test
        @NoHeapGrowth(rounds = 50)
        void inAllButOne() {
            if (++round % 50 != 10) {
                put(3_000 + round);
            }
        }

        @Test
        @NoHeapGrowth(rounds = 10, minGrowingShare = 0.85)
        void inFewerThanTheShare() {
            if (round++ % 5 != 0) {
                put(4_000 + round);
            }
        }

        private static void put(int key) {
            Programs.PRICES.put(key, new byte[Programs.SESSION_BYTES]);
        }
    }

    static class WarmedUp {
        int round;

        @RepeatedTest(3)
        @NoHeapGrowth
        void leaks() {
            Programs.PRICES.put(round++, new byte[Programs.SESSION_BYTES]);
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
