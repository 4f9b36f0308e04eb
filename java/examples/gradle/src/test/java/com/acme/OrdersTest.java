package com.acme;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.heapdiff.junit.Heap;
import io.github.heapdiff.junit.NoHeapGrowth;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class OrdersTest {
    /** Open orders by number. */
    static final Map<Integer, byte[]> OPEN = new HashMap<>();

    static int number;

    @Test
    @NoHeapGrowth
    void anOrderThatIsClosedIsGone() {
        int order = open();
        OPEN.remove(order);
        assertEquals(0, OPEN.size());
    }

    /** Expects the assertion to fail, and checks its message. Without {@code assertThrows}, this test fails because of the leak. */
    @Test
    void anOrderThatStaysOpenIsFound() {
        AssertionError growth = assertThrows(AssertionError.class, () -> Heap.assertNoGrowth(OrdersTest::open));
        assertTrue(growth.getMessage().contains("com.acme.OrdersTest.OPEN grew by"), growth.getMessage());
        OPEN.clear();
    }

    private static int open() {
        OPEN.put(++number, new byte[10_000]);
        return number;
    }
}
