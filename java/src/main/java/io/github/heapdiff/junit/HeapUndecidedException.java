package io.github.heapdiff.junit;

/** It cannot be told whether the heap grew; the message says why. */
public final class HeapUndecidedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    HeapUndecidedException(String message) {
        super(message);
    }

    HeapUndecidedException(String message, Throwable cause) {
        super(message, cause);
    }
}
