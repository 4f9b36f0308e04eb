package com.acme.scala

import java.util.function.IntConsumer
import java.util.stream.IntStream

/** Keeps some arrays of each way to allocate that Scala's compiler has a name of its own for. */
class Basket {
  def +=(size: Int): Unit = Orders.kept.add(new Array[Int](size))

  def sell(size: Int): Unit = {
    val each: IntConsumer = _ => Orders.kept.add(new Array[Short](size))
    IntStream.range(0, 1).forEach(each)
  }

  def refund(size: Int, note: String = "none"): Unit = {
    def inner(more: Int): Unit = Orders.kept.add(new Array[Char](more + note.length))
    inner(size)
  }

  def give(size: Int): Unit = {
    val each = new IntConsumer {
      def accept(value: Int): Unit = Orders.kept.add(new Array[Float](size))
    }
    each.accept(0)
  }
}

object Basket {
  def open(size: Int): Unit = Orders.kept.add(new Array[Long](size))
}

object Orders {
  val kept = new java.util.ArrayList[AnyRef]()

  def main(args: Array[String]): Unit = {
    Basket.open(1001)
    val basket = new Basket
    basket += 1002
    basket.sell(1003)
    basket.refund(1004)
    basket.give(1005)
    System.out.println("READY 1")
    System.in.read()
  }
}
