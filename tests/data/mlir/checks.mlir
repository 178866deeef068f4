// A function of each kind of check that holds, and of each that does not; devices; two programs.
func.func @holds() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<[2.0, 4.0]> : tensor<2xf32>
  check.expect_eq %0, %0 : tensor<2xf32>
  check.expect_almost_eq_const %1, dense<[2.00009, 4.0]> : tensor<2xf32>
  check.expect_almost_eq %0, %1, tolerance = 2.0 : tensor<2xf32>
  check.expect_close %0, %0, max_ulp_difference = 0 : tensor<2xf32>, tensor<2xf32>
  return
}
func.func @not_equal() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  check.expect_eq_const %0, dense<[1, 3]> : tensor<2xi32>
  return
}
func.func @not_almost_equal() {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  check.expect_almost_eq_const %0, dense<0.001> : tensor<f32>
  return
}
func.func @not_close() {
  %0 = stablehlo.constant dense<0x3F800000> : tensor<f32>
  %1 = stablehlo.constant dense<0x3F800003> : tensor<f32>
  check.expect_close %0, %1, max_ulp_difference = 2 : tensor<f32>, tensor<f32>
  return
}
func.func @probes() {
  %0 = stablehlo.constant dense<3> : tensor<i32>
  %1 = interpreter.probe %0, probe_id = "three" : tensor<i32>
  check.expect_serialized_eq %1, probe_id = "three" : tensor<i32>
  check.expect_serialized_eq %1, probe_id = "three", iter = 1 : tensor<i32>
  return
}

// -----

module @devices {
  func.func @sum(%x: tensor<2xi32>) -> tensor<2xi32> {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }) : (tensor<2xi32>) -> tensor<2xi32>
    return %0 : tensor<2xi32>
  }
  func.func @main() {
    %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %1 = stablehlo.constant dense<[10, 20]> : tensor<2xi32>
    %2:2 = "interpreter.run_parallel"(%0, %1) {programs = [[@sum], [@sum]]} : (tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
    check.expect_eq_const %2#0, dense<[11, 22]> : tensor<2xi32>
    check.expect_eq %2#0, %2#1 : tensor<2xi32>
    return
  }
}

// -----

func.func @wrong() {
  check.expect_eq %0, %0 : tensor<f32>
}
