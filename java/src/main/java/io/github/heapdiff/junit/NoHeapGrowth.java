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
 * Fails a test method if repeating it makes something in the heap grow. On a class, applies to each test method.
 *
 * <p>The method runs at most {@code warmUp + 2 * rounds} times, on one instance of its class. If an earlier check in this JVM found growth,
 * the method may run more often: by the number of rounds that the earlier check ran. The methods that JUnit runs before and after each test
 * run only once. No other test of this JVM runs at the same time.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(NoHeapGrowthExtension.class)
@ResourceLock(Resources.GLOBAL)
public @interface NoHeapGrowth {
    /** Number of rounds in each of the two steps. The second step follows only if something can have grown in the first step. */
    int rounds() default GrowthOptions.ROUNDS;

    /** Number of rounds before the first snapshot. */
    int warmUp() default GrowthOptions.WARM_UP;

    /**
     * Minimum share of growing rounds: the test fails if the content of one holder grows in at least this share of the measured rounds. The
     * share is above 0 and at most 1. At most 50 rounds of the second step are measured.
     */
    double minGrowingShare() default GrowthOptions.MIN_GROWING_SHARE;

    /** Maximum number of bytes by which a holder may grow from the first snapshot to the last. */
    long toleratedBytes() default 0;
}
