package io.github.heapdiff.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.api.parallel.Resources;

/**
 * Fails a test method if the heap grows when the method is repeated. On a class, the annotation applies to each test
 * method.
 *
 * <p>The method usually runs at most {@code warmUp + 2 * rounds} times, on one instance of its class. It can run more
 * often in two cases. If an earlier check in this JVM found growth, the method can run as many additional rounds as the
 * earlier check, and then both steps again. If forked children wrote the first snapshots and no further child can be
 * forked, the steps start again.
 *
 * <p>{@code @BeforeEach} and {@code @AfterEach} methods run only once. No other test of this JVM runs at the same time.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(NoHeapGrowthExtension.class)
@ResourceLock(Resources.GLOBAL)
public @interface NoHeapGrowth {
    /**
     * Number of rounds in each of the two steps. If the first step shows that the test passes, there is no second step.
     */
    int rounds() default GrowthOptions.ROUNDS;

    /** Number of rounds before the first snapshot. */
    int warmUp() default GrowthOptions.WARM_UP;

    /**
     * Minimum share of growing rounds, above 0 and at most 1. The test fails only if the content of one holder grows in
     * at least this share of the measured rounds. The holder is the field whose content grows. At most 50 rounds of the
     * second step are measured.
     */
    double minGrowingShare() default GrowthOptions.MIN_GROWING_SHARE;

    /** Maximum number of bytes by which a holder may grow from the first snapshot to the last. */
    long toleratedBytes() default 0;
}
