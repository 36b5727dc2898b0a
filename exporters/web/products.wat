;; Products of a large page: lines of weights, as they stand in their file, times rows of activations.
;;
;; `times` decodes each line once, to float64, and multiplies it with each row; sums are float64.
;; Types: 0 float64, 1 float32, 2 float16, 3 bfloat16; blocks of 32 numbers with a float16 scale:
;; 4 Q8_0, 5 Q4_0, 6 Q4_1 (with a float16 minimum). tests/web/test_products.py assembles this text
;; and compares its bytes with products.js.
(module
  (import "page" "memory" (memory 1))

  ;; The number of a float16's bits.
  (func $half (param $bits i32) (result f32)
    (f32.copysign
      (f32.mul
        (f32.reinterpret_i32 (i32.shl (i32.and (local.get $bits) (i32.const 0x7fff)) (i32.const 13)))
        (f32.const 0x1p112))
      (f32.reinterpret_i32 (i32.shl (local.get $bits) (i32.const 16)))))

  (func $floats (param $from i32) (param $to i32) (param $end i32)
    (loop $more
      (v128.store (local.get $to) (f64x2.promote_low_f32x4 (v128.load64_zero (local.get $from))))
      (v128.store offset=16 (local.get $to) (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $from))))
      (local.set $from (i32.add (local.get $from) (i32.const 16)))
      (local.set $to (i32.add (local.get $to) (i32.const 32)))
      (br_if $more (i32.lt_u (local.get $to) (local.get $end)))))

  (func $halves (param $from i32) (param $to i32) (param $end i32)
    (local $v v128)
    (loop $more
      (local.set $v (v128.load16x4_u (local.get $from)))
      (local.set $v
        (v128.or
          (f32x4.mul
            (i32x4.shl (v128.and (local.get $v) (v128.const i32x4 0x7fff 0x7fff 0x7fff 0x7fff)) (i32.const 13))
            (v128.const f32x4 0x1p112 0x1p112 0x1p112 0x1p112))
          (i32x4.shl (v128.and (local.get $v) (v128.const i32x4 0x8000 0x8000 0x8000 0x8000)) (i32.const 16))))
      (v128.store (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
      (v128.store offset=16 (local.get $to)
        (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
      (local.set $from (i32.add (local.get $from) (i32.const 8)))
      (local.set $to (i32.add (local.get $to) (i32.const 32)))
      (br_if $more (i32.lt_u (local.get $to) (local.get $end)))))

  (func $brains (param $from i32) (param $to i32) (param $end i32)
    (local $v v128)
    (loop $more
      (local.set $v (i32x4.shl (v128.load16x4_u (local.get $from)) (i32.const 16)))
      (v128.store (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
      (v128.store offset=16 (local.get $to)
        (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
      (local.set $from (i32.add (local.get $from) (i32.const 8)))
      (local.set $to (i32.add (local.get $to) (i32.const 32)))
      (br_if $more (i32.lt_u (local.get $to) (local.get $end)))))

  ;; Q8_0: a scale, 32 integers of a byte.
  (func $bytes (param $from i32) (param $to i32) (param $end i32)
    (local $scale v128) (local $stop i32) (local $h v128) (local $v v128)
    (loop $more
      (local.set $scale (f32x4.splat (call $half (i32.load16_u (local.get $from)))))
      (local.set $from (i32.add (local.get $from) (i32.const 2)))
      (local.set $stop (i32.add (local.get $to) (i32.const 256)))
      (loop $eight
        (local.set $h (v128.load8x8_s (local.get $from)))
        (local.set $v
          (f32x4.mul (local.get $scale) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $h)))))
        (v128.store (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
        (v128.store offset=16 (local.get $to)
          (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
        (local.set $v
          (f32x4.mul (local.get $scale) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $h)))))
        (v128.store offset=32 (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
        (v128.store offset=48 (local.get $to)
          (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
        (local.set $from (i32.add (local.get $from) (i32.const 8)))
        (local.set $to (i32.add (local.get $to) (i32.const 64)))
        (br_if $eight (i32.lt_u (local.get $to) (local.get $stop))))
      (br_if $more (i32.lt_u (local.get $to) (local.get $end)))))

  ;; Q4_0 and Q4_1: 32 integers of four bits, the first half of a block in the low bits. They begin
  ;; after `head` bytes. Q4_0 subtracts 8 from each, `zero`; Q4_1 adds a minimum: `least` is 1.
  (func $nibbles (param $from i32) (param $to i32) (param $end i32)
    (param $head i32) (param $zero v128) (param $least f32)
    (local $scale v128) (local $start v128) (local $stop i32) (local $all v128) (local $h v128) (local $v v128)
    (loop $more
      (local.set $scale (f32x4.splat (call $half (i32.load16_u (local.get $from)))))
      (local.set $start (f32x4.splat (f32.mul (local.get $least) (call $half (i32.load16_u offset=2 (local.get $from))))))
      (local.set $from (i32.add (local.get $from) (local.get $head)))
      (local.set $stop (i32.add (local.get $to) (i32.const 128)))
      (loop $eight
        (local.set $all (v128.load8x8_u (local.get $from)))
        (local.set $h
          (i16x8.sub (v128.and (local.get $all) (v128.const i16x8 15 15 15 15 15 15 15 15)) (local.get $zero)))
        (local.set $v
          (f32x4.add (local.get $start) (f32x4.mul (local.get $scale) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $h))))))
        (v128.store (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
        (v128.store offset=16 (local.get $to)
          (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
        (local.set $v
          (f32x4.add (local.get $start) (f32x4.mul (local.get $scale) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $h))))))
        (v128.store offset=32 (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
        (v128.store offset=48 (local.get $to)
          (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
        (local.set $h (i16x8.sub (i16x8.shr_u (local.get $all) (i32.const 4)) (local.get $zero)))
        (local.set $v
          (f32x4.add (local.get $start) (f32x4.mul (local.get $scale) (f32x4.convert_i32x4_s (i32x4.extend_low_i16x8_s (local.get $h))))))
        (v128.store offset=128 (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
        (v128.store offset=144 (local.get $to)
          (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
        (local.set $v
          (f32x4.add (local.get $start) (f32x4.mul (local.get $scale) (f32x4.convert_i32x4_s (i32x4.extend_high_i16x8_s (local.get $h))))))
        (v128.store offset=160 (local.get $to) (f64x2.promote_low_f32x4 (local.get $v)))
        (v128.store offset=176 (local.get $to)
          (f64x2.promote_low_f32x4 (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get $v) (local.get $v))))
        (local.set $from (i32.add (local.get $from) (i32.const 8)))
        (local.set $to (i32.add (local.get $to) (i32.const 64)))
        (br_if $eight (i32.lt_u (local.get $to) (local.get $stop))))
      (local.set $to (i32.add (local.get $to) (i32.const 128)))
      (br_if $more (i32.lt_u (local.get $to) (local.get $end)))))

  ;; Decodes n numbers of a type, other than float64.
  (func $decode (export "decode") (param $type i32) (param $from i32) (param $to i32) (param $n i32)
    (local $end i32)
    (local.set $end (i32.add (local.get $to) (i32.shl (local.get $n) (i32.const 3))))
    (block $q41 (block $q40 (block $q8 (block $bf (block $f16 (block $f32
      (br_table $f32 $f32 $f16 $bf $q8 $q40 $q41 (local.get $type)))
      (return (call $floats (local.get $from) (local.get $to) (local.get $end))))
      (return (call $halves (local.get $from) (local.get $to) (local.get $end))))
      (return (call $brains (local.get $from) (local.get $to) (local.get $end))))
      (return (call $bytes (local.get $from) (local.get $to) (local.get $end))))
      (return (call $nibbles (local.get $from) (local.get $to) (local.get $end)
        (i32.const 2) (v128.const i16x8 8 8 8 8 8 8 8 8) (f32.const 0))))
    (call $nibbles (local.get $from) (local.get $to) (local.get $end)
      (i32.const 4) (v128.const i16x8 0 0 0 0 0 0 0 0) (f32.const 1)))

  ;; The sum of both lanes.
  (func $both (param $v v128) (result f64)
    (f64.add (f64x2.extract_lane 0 (local.get $v)) (f64x2.extract_lane 1 (local.get $v))))

  ;; The product of n numbers with one row.
  (func $one (param $w i32) (param $x i32) (param $n i32) (result f64)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128) (local $sum f64) (local $end i32)
    (local.set $end (i32.add (local.get $w) (i32.shl (i32.and (local.get $n) (i32.const -8)) (i32.const 3))))
    (block $none
      (br_if $none (i32.eq (local.get $w) (local.get $end)))
      (loop $more
        (local.set $a (f64x2.add (local.get $a) (f64x2.mul (v128.load (local.get $w)) (v128.load (local.get $x)))))
        (local.set $b (f64x2.add (local.get $b) (f64x2.mul (v128.load offset=16 (local.get $w)) (v128.load offset=16 (local.get $x)))))
        (local.set $c (f64x2.add (local.get $c) (f64x2.mul (v128.load offset=32 (local.get $w)) (v128.load offset=32 (local.get $x)))))
        (local.set $d (f64x2.add (local.get $d) (f64x2.mul (v128.load offset=48 (local.get $w)) (v128.load offset=48 (local.get $x)))))
        (local.set $w (i32.add (local.get $w) (i32.const 64)))
        (local.set $x (i32.add (local.get $x) (i32.const 64)))
        (br_if $more (i32.lt_u (local.get $w) (local.get $end)))))
    (local.set $sum (call $both (f64x2.add (f64x2.add (local.get $a) (local.get $b)) (f64x2.add (local.get $c) (local.get $d)))))
    (local.set $end (i32.add (local.get $w) (i32.shl (i32.and (local.get $n) (i32.const 7)) (i32.const 3))))
    (block $done
      (loop $rest
        (br_if $done (i32.eq (local.get $w) (local.get $end)))
        (local.set $sum (f64.add (local.get $sum) (f64.mul (f64.load (local.get $w)) (f64.load (local.get $x)))))
        (local.set $w (i32.add (local.get $w) (i32.const 8)))
        (local.set $x (i32.add (local.get $x) (i32.const 8)))
        (br $rest)))
    (local.get $sum))

  ;; The products of n numbers with four rows, `row` bytes apart, to cells `far` bytes apart.
  (func $four (param $w i32) (param $x i32) (param $n i32) (param $row i32) (param $y i32) (param $far i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128) (local $v v128) (local $end i32)
    (local $x1 i32) (local $x2 i32) (local $x3 i32)
    (local.set $x1 (i32.add (local.get $x) (local.get $row)))
    (local.set $x2 (i32.add (local.get $x1) (local.get $row)))
    (local.set $x3 (i32.add (local.get $x2) (local.get $row)))
    (local.set $end (i32.add (local.get $w) (i32.shl (local.get $n) (i32.const 3))))
    (loop $more
      (local.set $v (v128.load (local.get $w)))
      (local.set $a (f64x2.add (local.get $a) (f64x2.mul (local.get $v) (v128.load (local.get $x)))))
      (local.set $b (f64x2.add (local.get $b) (f64x2.mul (local.get $v) (v128.load (local.get $x1)))))
      (local.set $c (f64x2.add (local.get $c) (f64x2.mul (local.get $v) (v128.load (local.get $x2)))))
      (local.set $d (f64x2.add (local.get $d) (f64x2.mul (local.get $v) (v128.load (local.get $x3)))))
      (local.set $w (i32.add (local.get $w) (i32.const 16)))
      (local.set $x (i32.add (local.get $x) (i32.const 16)))
      (local.set $x1 (i32.add (local.get $x1) (i32.const 16)))
      (local.set $x2 (i32.add (local.get $x2) (i32.const 16)))
      (local.set $x3 (i32.add (local.get $x3) (i32.const 16)))
      (br_if $more (i32.lt_u (local.get $w) (local.get $end))))
    (f64.store (local.get $y) (call $both (local.get $a)))
    (local.set $y (i32.add (local.get $y) (local.get $far)))
    (f64.store (local.get $y) (call $both (local.get $b)))
    (local.set $y (i32.add (local.get $y) (local.get $far)))
    (f64.store (local.get $y) (call $both (local.get $c)))
    (f64.store (i32.add (local.get $y) (local.get $far)) (call $both (local.get $d))))

  ;; y[row][line] for `lines` lines of n numbers, `bytes` bytes apart, and `rows` rows of n numbers.
  ;; `line` is room for a decoded line.
  (func (export "times") (param $type i32) (param $w i32) (param $bytes i32) (param $lines i32)
    (param $n i32) (param $x i32) (param $rows i32) (param $y i32) (param $line i32)
    (local $k i32) (local $t i32) (local $row i32) (local $far i32) (local $at i32) (local $fours i32)
    (local.set $row (i32.shl (local.get $n) (i32.const 3)))
    (local.set $far (i32.shl (local.get $lines) (i32.const 3)))
    ;; four rows together take two numbers at a time
    (local.set $fours (select (i32.const 0) (i32.and (local.get $rows) (i32.const -4)) (i32.and (local.get $n) (i32.const 1))))
    (loop $each
      (if (i32.eqz (local.get $type))
        (then (local.set $line (local.get $w)))
        (else (call $decode (local.get $type) (local.get $w) (local.get $line) (local.get $n))))
      (local.set $t (i32.const 0))
      (local.set $at (i32.add (local.get $y) (i32.shl (local.get $k) (i32.const 3))))
      (block $done
        (loop $next
          (br_if $done (i32.eq (local.get $t) (local.get $rows)))
          (if (i32.lt_u (local.get $t) (local.get $fours))
            (then
              (call $four (local.get $line) (i32.add (local.get $x) (i32.mul (local.get $t) (local.get $row)))
                (local.get $n) (local.get $row) (local.get $at) (local.get $far))
              (local.set $t (i32.add (local.get $t) (i32.const 4)))
              (local.set $at (i32.add (local.get $at) (i32.shl (local.get $far) (i32.const 2)))))
            (else
              (f64.store (local.get $at)
                (call $one (local.get $line) (i32.add (local.get $x) (i32.mul (local.get $t) (local.get $row))) (local.get $n)))
              (local.set $t (i32.add (local.get $t) (i32.const 1)))
              (local.set $at (i32.add (local.get $at) (local.get $far)))))
          (br $next)))
      (local.set $w (i32.add (local.get $w) (local.get $bytes)))
      (local.set $k (i32.add (local.get $k) (i32.const 1)))
      (br_if $each (i32.lt_u (local.get $k) (local.get $lines)))))
)
