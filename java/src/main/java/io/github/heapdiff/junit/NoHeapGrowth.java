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
 * Fails a test method, or each test method of a class, if something in the heap grows with its rounds.
 *
 * <p>The method runs at most {@code warmUp + 2 * rounds} times, on one instance of its class. If an earlier check in this JVM found
 * growth, the method may run that many rounds more. The methods before and after each test run once. No other test of this JVM
 * runs at the same time.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(NoHeapGrowthExtension.class)
@ResourceLock(Resources.GLOBAL)
public @interface NoHeapGrowth {
    /** Number of rounds in each of the two steps. */
    int rounds() default GrowthOptions.ROUNDS;

    /** Number of rounds before the first snapshot. */
    int warmUp() default GrowthOptions.WARM_UP;

    /**
     * The test fails if the content of one holder grows in at least this share of the measured rounds. The share is above 0 and at
     * most 1. In the second step, at most 50 rounds are measured one by one.
     */
    double minGrowingShare() default GrowthOptions.MIN_GROWING_SHARE;

    /** Maximum number of bytes by which a holder may grow from the first snapshot to the last. */
    long toleratedBytes() default 0;
}
