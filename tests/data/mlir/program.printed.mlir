module @jit_f attributes {"jax.odd key" = [1, 2.500000e+00, "s\22\\\0A", unit, @a::@b, f32], mhlo.num_partitions = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x8xf32> {mhlo.sharding = "{replicated}"}, %arg1: tuple<tensor<f32>, tensor<2xi32>>) -> (tensor<4xf32> {jax.result_info = "r"}) {
    %cst = stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
    %cst_0 = stablehlo.constant dense<[[(1.000000e+00,-2.000000e+00)], [(0x7F800000,5.000000e-01)]]> : tensor<2x1xcomplex<f32>>
    %c = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %n = stablehlo.constant {other = dense<[1, 2]> : tensor<2xi64>} dense<[-1, 2]> : tensor<2xi4>
    %0:2 = stablehlo.while(%iterArg = %zero, %iterArg_1 = %arg0) : tensor<f32>, tensor<4x8xf32>
    cond {
      %2 = stablehlo.compare LT, %iterArg, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = func.call @g(%iterArg_1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %iterArg, %2 : tensor<f32>, tensor<4x8xf32>
    }
    %1 = stablehlo.reduce(%0#1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @g(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.custom_call @t(%arg0) {api_version = 4 : i32, backend_config = {a = 1.000000e-03 : f32}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
