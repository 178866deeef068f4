#loc = loc(unknown)
#map = dense<[1, 2]> : tensor<2xi64>
!pair = tuple<tensor<f32>, tensor<2xi32>>
module @jit_f attributes {mhlo.num_partitions = 1 : i32, "jax.odd key" = [1, 2.5, "s\22\\\0A", unit, @a::@b, f32]} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4x8xf32> {mhlo.sharding = "{replicated}"} loc("x"), %arg1: !pair) -> (tensor<4xf32> {jax.result_info = "r"}) {
    %cst = stablehlo.constant dense<"0x0000803F0000004000004040"> : tensor<3xf32>
    %cst_0 = stablehlo.constant dense<[[(1.0, -2.0)], [(0x7F800000, 0.5)]]> : tensor<2x1xcomplex<f32>>
    %c = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %n = "stablehlo.constant"() <{value = dense<[-1, 2]> : tensor<2xi4>}> {other = #map} : () -> tensor<2xi4>
    %0:2 = stablehlo.while(%iterArg = %zero, %iterArg_1 = %arg0) : tensor<f32>, tensor<4x8xf32>
    cond {
      %5 = stablehlo.compare LT, %iterArg, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %5 = func.call @g(%iterArg_1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %iterArg, %5 : tensor<f32>, tensor<4x8xf32>
    } loc(#loc1)
    %1 = stablehlo.reduce(%0#1 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return %1 : tensor<4xf32> loc(fused[callsite("a" at "b.py":1:2), #loc])
  }
  func.func private @g(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.custom_call @t(%arg0) {api_version = 4 : i32, backend_config = {a = 1.0e-3 : f32}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
#loc1 = loc("named"("file.py":3:4))
