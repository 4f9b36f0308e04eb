package com.acme;

import io.github.heapdiff.junit.NoHeapGrowth;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Fails: what a leak says in a build. */
class LeakTest {
    static final List<byte[]> KEPT = new ArrayList<>();

    @Test
    @NoHeapGrowth
    void keeps() {
        KEPT.add(new byte[10_000]);
    }
}
