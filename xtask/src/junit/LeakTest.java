package com.acme;

import io.github.heapdiff.junit.NoHeapGrowth;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A test with a leak. It makes the build fail and print the message about the leak. */
class LeakTest {
    static final List<byte[]> KEPT = new ArrayList<>();

    @Test
    @NoHeapGrowth
    void keeps() {
        KEPT.add(new byte[10_000]);
    }
}
