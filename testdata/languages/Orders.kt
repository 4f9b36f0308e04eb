package com.acme.kotlin

import java.util.function.IntConsumer
import java.util.stream.IntStream

/** Keeps arrays that are allocated in Kotlin constructs for which the compiler generates classes or unusual names. */
@JvmField
val kept = java.util.ArrayList<Any>()

class Order(val amounts: LongArray)

fun book(size: Int, note: String = "none"): Order = Order(LongArray(size + note.length))

class Shop {
    companion object {
        fun open(size: Int) {
            kept.add(IntArray(size))
        }
    }

    fun sell(size: Int) {
        val all = IntConsumer { kept.add(ShortArray(size)) }
        IntStream.range(0, 1).forEach(all)
    }

    /** The object expression gets its own class. */
    fun refund(size: Int) {
        val each = object : IntConsumer {
            override fun accept(value: Int) {
                kept.add(CharArray(size))
            }
        }
        each.accept(0)
    }
}

object Registry {
    fun `with spaces`(size: Int) {
        kept.add(FloatArray(size))
    }
}

fun main() {
    kept.add(book(1001))
    Shop.open(1002)
    Shop().sell(1003)
    Shop().refund(1004)
    Registry.`with spaces`(1005)
    println("READY 1")
    System.`in`.read()
}
