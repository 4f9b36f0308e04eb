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
 * A test method, or each of a class, fails when something in the heap grows with each round of it.
 *
 * <p>The method is run {@code warmUp + 2 * rounds} times on one instance of its class; what is to run before and after each test
 * runs once. No other test of this JVM runs meanwhile.
 */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@Inherited
@ExtendWith(NoHeapGrowthExtension.class)
@ResourceLock(Resources.GLOBAL)
public @interface NoHeapGrowth {
    /** Rounds between two snapshots. */
    int rounds() default GrowthOptions.ROUNDS;

    /** Rounds before the first snapshot. */
    int warmUp() default GrowthOptions.WARM_UP;

    /** A holder may grow by so many bytes from the first snapshot to the last. */
    long toleratedBytes() default 0;
}
