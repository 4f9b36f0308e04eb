package com.acme;

import io.github.heapdiff.junit.NoHeapGrowth;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Contains a leak, so that the build fails and prints the message of a leak. */
class LeakTest {
    static final List<byte[]> KEPT = new ArrayList<>();

    @Test
    @NoHeapGrowth
    void keeps() {
        KEPT.add(new byte[10_000]);
    }
}
