module {
  func.func @main(%arg0: tensor<2x1x6x6xf32>) -> tensor<2x3xf32> {
    %cst = stablehlo.constant dense_resource<torch_tensor_3_torch.float32> : tensor<3xf32>
    %cst_0 = stablehlo.constant dense_resource<torch_tensor_3_4_torch.float32> : tensor<3x4xf32>
    %cst_1 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_6> : tensor<4xf32>
    %cst_2 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_5> : tensor<4xf32>
    %cst_3 = stablehlo.constant dense_resource<torch_tensor_12_torch.float32> : tensor<12xf32>
    %cst_4 = stablehlo.constant dense_resource<torch_tensor_12_4_torch.float32> : tensor<12x4xf32>
    %cst_5 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_4> : tensor<4xf32>
    %cst_6 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_3> : tensor<4xf32>
    %cst_7 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_2> : tensor<4xf32>
    %cst_8 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32_1> : tensor<4xf32>
    %cst_9 = stablehlo.constant dense_resource<torch_tensor_4_1_3_3_torch.float32> : tensor<4x1x3x3xf32>
    %cst_10 = stablehlo.constant dense_resource<torch_tensor_4_torch.float32> : tensor<4xf32>
    %cst_11 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
    %cst_12 = stablehlo.constant dense<1.000000e+00> : tensor<2x4x6x6xf32>
    %cst_13 = stablehlo.constant dense<2.000000e+00> : tensor<2x4x6x6xf32>
    %cst_14 = stablehlo.constant dense<5.000000e-01> : tensor<2x4x6x6xf32>
    %cst_15 = stablehlo.constant dense<-4.000000e+00> : tensor<2x4x6x6xf32>
    %cst_16 = stablehlo.constant dense<4.000000e+00> : tensor<2x4x6x6xf32>
    %cst_17 = stablehlo.constant dense<-2.72614237E-10> : tensor<2x4x6x6xf32>
    %cst_18 = stablehlo.constant dense<2.77068146E-8> : tensor<2x4x6x6xf32>
    %cst_19 = stablehlo.constant dense<-2.10102394E-6> : tensor<2x4x6x6xf32>
    %cst_20 = stablehlo.constant dense<-5.69250624E-5> : tensor<2x4x6x6xf32>
    %cst_21 = stablehlo.constant dense<-7.34990637E-4> : tensor<2x4x6x6xf32>
    %cst_22 = stablehlo.constant dense<-2.954600e-03> : tensor<2x4x6x6xf32>
    %cst_23 = stablehlo.constant dense<-0.0160960332> : tensor<2x4x6x6xf32>
    %cst_24 = stablehlo.constant dense<-1.45660715E-5> : tensor<2x4x6x6xf32>
    %cst_25 = stablehlo.constant dense<-2.13374049E-4> : tensor<2x4x6x6xf32>
    %cst_26 = stablehlo.constant dense<-0.00168282702> : tensor<2x4x6x6xf32>
    %cst_27 = stablehlo.constant dense<-0.00737332925> : tensor<2x4x6x6xf32>
    %cst_28 = stablehlo.constant dense<-0.0142647391> : tensor<2x4x6x6xf32>
    %cst_29 = stablehlo.constant dense<-1.000000e+00> : tensor<2x4x6x6xf32>
    %cst_30 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_32 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %cst_33 = arith.constant dense<1.000000e-05> : tensor<1xf64>
    %cst_34 = arith.constant dense<1> : tensor<1xi64>
    %cst_35 = arith.constant dense<2> : tensor<1xi64>
    %cst_36 = arith.constant dense<4> : tensor<1xi64>
    %cst_37 = arith.constant dense<9> : tensor<1xi64>
    %0 = stablehlo.convolution(%arg0, %cst_9) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x1x6x6xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x6x6xf32>
    %1 = stablehlo.reshape %cst_10 : (tensor<4xf32>) -> tensor<4x1x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32>
    %3 = stablehlo.add %0, %2 : tensor<2x4x6x6xf32>
    %4 = stablehlo.convert %cst_33 : (tensor<1xf64>) -> tensor<1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %7 = stablehlo.add %6, %cst_7 : tensor<4xf32>
    %8 = stablehlo.sqrt %7 : tensor<4xf32>
    %9 = stablehlo.divide %cst_11, %8 : tensor<4xf32>
    %10 = stablehlo.convert %cst_34 : (tensor<1xi64>) -> tensor<1xf32>
    %11 = stablehlo.reshape %10 : (tensor<1xf32>) -> tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %13 = stablehlo.multiply %9, %12 : tensor<4xf32>
    %14 = stablehlo.reshape %cst_8 : (tensor<4xf32>) -> tensor<4x1xf32>
    %15 = stablehlo.reshape %14 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %16 = stablehlo.reshape %13 : (tensor<4xf32>) -> tensor<4x1xf32>
    %17 = stablehlo.reshape %16 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %18 = stablehlo.broadcast_in_dim %15, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32>
    %19 = stablehlo.subtract %3, %18 : tensor<2x4x6x6xf32>
    %20 = stablehlo.broadcast_in_dim %17, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32>
    %21 = stablehlo.multiply %19, %20 : tensor<2x4x6x6xf32>
    %22 = stablehlo.reshape %cst_6 : (tensor<4xf32>) -> tensor<4x1xf32>
    %23 = stablehlo.reshape %22 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32>
    %25 = stablehlo.multiply %21, %24 : tensor<2x4x6x6xf32>
    %26 = stablehlo.reshape %cst_5 : (tensor<4xf32>) -> tensor<4x1xf32>
    %27 = stablehlo.reshape %26 : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [1, 2, 3] : (tensor<4x1x1xf32>) -> tensor<2x4x6x6xf32>
    %29 = stablehlo.add %25, %28 : tensor<2x4x6x6xf32>
    %30 = stablehlo.multiply %29, %cst_14 : tensor<2x4x6x6xf32>
    %31 = stablehlo.rsqrt %cst_13 : tensor<2x4x6x6xf32>
    %32 = stablehlo.multiply %29, %31 : tensor<2x4x6x6xf32>
    %33 = stablehlo.clamp %cst_15, %32, %cst_16 : tensor<2x4x6x6xf32>
    %34 = stablehlo.multiply %33, %33 : tensor<2x4x6x6xf32>
    %35 = stablehlo.multiply %cst_17, %34 : tensor<2x4x6x6xf32>
    %36 = stablehlo.add %35, %cst_18 : tensor<2x4x6x6xf32>
    %37 = stablehlo.multiply %36, %34 : tensor<2x4x6x6xf32>
    %38 = stablehlo.add %37, %cst_19 : tensor<2x4x6x6xf32>
    %39 = stablehlo.multiply %38, %34 : tensor<2x4x6x6xf32>
    %40 = stablehlo.add %39, %cst_20 : tensor<2x4x6x6xf32>
    %41 = stablehlo.multiply %40, %34 : tensor<2x4x6x6xf32>
    %42 = stablehlo.add %41, %cst_21 : tensor<2x4x6x6xf32>
    %43 = stablehlo.multiply %42, %34 : tensor<2x4x6x6xf32>
    %44 = stablehlo.add %43, %cst_22 : tensor<2x4x6x6xf32>
    %45 = stablehlo.multiply %44, %34 : tensor<2x4x6x6xf32>
    %46 = stablehlo.add %45, %cst_23 : tensor<2x4x6x6xf32>
    %47 = stablehlo.multiply %cst_24, %34 : tensor<2x4x6x6xf32>
    %48 = stablehlo.add %47, %cst_25 : tensor<2x4x6x6xf32>
    %49 = stablehlo.multiply %48, %34 : tensor<2x4x6x6xf32>
    %50 = stablehlo.add %49, %cst_26 : tensor<2x4x6x6xf32>
    %51 = stablehlo.multiply %50, %34 : tensor<2x4x6x6xf32>
    %52 = stablehlo.add %51, %cst_27 : tensor<2x4x6x6xf32>
    %53 = stablehlo.multiply %52, %34 : tensor<2x4x6x6xf32>
    %54 = stablehlo.add %53, %cst_28 : tensor<2x4x6x6xf32>
    %55 = stablehlo.multiply %33, %46 : tensor<2x4x6x6xf32>
    %56 = stablehlo.divide %55, %54 : tensor<2x4x6x6xf32>
    %57 = stablehlo.clamp %cst_29, %56, %cst_12 : tensor<2x4x6x6xf32>
    %58 = stablehlo.add %57, %cst_12 : tensor<2x4x6x6xf32>
    %59 = stablehlo.multiply %58, %30 : tensor<2x4x6x6xf32>
    %60 = "stablehlo.reduce_window"(%59, %cst_30) <{padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %154 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %154 : tensor<f32>
    }) : (tensor<2x4x6x6xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
    %61 = stablehlo.reshape %60 : (tensor<2x4x3x3xf32>) -> tensor<2x4x9xf32>
    %62 = stablehlo.transpose %61, dims = [0, 2, 1] : (tensor<2x4x9xf32>) -> tensor<2x9x4xf32>
    %63 = stablehlo.transpose %cst_4, dims = [1, 0] : (tensor<12x4xf32>) -> tensor<4x12xf32>
    %64 = stablehlo.reshape %62 : (tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
    %65 = stablehlo.broadcast_in_dim %63, dims = [1, 2] : (tensor<4x12xf32>) -> tensor<2x4x12xf32>
    %66 = stablehlo.reshape %65 : (tensor<2x4x12xf32>) -> tensor<2x4x12xf32>
    %67 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2] : (tensor<2x4x12xf32>) -> tensor<2x4x12xf32>
    %68 = stablehlo.dot_general %64, %67, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x9x4xf32>, tensor<2x4x12xf32>) -> tensor<2x9x12xf32>
    %69 = stablehlo.reshape %68 : (tensor<2x9x12xf32>) -> tensor<2x9x12xf32>
    %70 = stablehlo.broadcast_in_dim %cst_3, dims = [2] : (tensor<12xf32>) -> tensor<2x9x12xf32>
    %71 = stablehlo.add %69, %70 : tensor<2x9x12xf32>
    %72 = stablehlo.slice %71 [0:2, 0:9, 0:4] : (tensor<2x9x12xf32>) -> tensor<2x9x4xf32>
    %73 = stablehlo.slice %71 [0:2, 0:9, 4:8] : (tensor<2x9x12xf32>) -> tensor<2x9x4xf32>
    %74 = stablehlo.slice %71 [0:2, 0:9, 8:12] : (tensor<2x9x12xf32>) -> tensor<2x9x4xf32>
    %75 = stablehlo.transpose %73, dims = [0, 2, 1] : (tensor<2x9x4xf32>) -> tensor<2x4x9xf32>
    %76 = stablehlo.reshape %72 : (tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
    %77 = stablehlo.reshape %75 : (tensor<2x4x9xf32>) -> tensor<2x4x9xf32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2] : (tensor<2x4x9xf32>) -> tensor<2x4x9xf32>
    %79 = stablehlo.dot_general %76, %78, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x9x4xf32>, tensor<2x4x9xf32>) -> tensor<2x9x9xf32>
    %80 = stablehlo.reshape %79 : (tensor<2x9x9xf32>) -> tensor<2x9x9xf32>
    %81 = stablehlo.convert %cst_35 : (tensor<1xi64>) -> tensor<1xf32>
    %82 = stablehlo.reshape %81 : (tensor<1xf32>) -> tensor<f32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [] : (tensor<f32>) -> tensor<2x9x9xf32>
    %84 = stablehlo.divide %80, %83 : tensor<2x9x9xf32>
    %85 = stablehlo.reduce(%84 init: %cst_30) applies stablehlo.maximum across dimensions = [2] : (tensor<2x9x9xf32>, tensor<f32>) -> tensor<2x9xf32>
    %86 = stablehlo.reshape %85 : (tensor<2x9xf32>) -> tensor<2x9x1xf32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [0, 1, 2] : (tensor<2x9x1xf32>) -> tensor<2x9x9xf32>
    %88 = stablehlo.subtract %84, %87 : tensor<2x9x9xf32>
    %89 = stablehlo.exponential %88 : tensor<2x9x9xf32>
    %90 = stablehlo.reduce(%89 init: %cst_31) applies stablehlo.add across dimensions = [2] : (tensor<2x9x9xf32>, tensor<f32>) -> tensor<2x9xf32>
    %91 = stablehlo.reshape %90 : (tensor<2x9xf32>) -> tensor<2x9x1xf32>
    %92 = stablehlo.broadcast_in_dim %91, dims = [0, 1, 2] : (tensor<2x9x1xf32>) -> tensor<2x9x9xf32>
    %93 = stablehlo.divide %89, %92 : tensor<2x9x9xf32>
    %94 = stablehlo.reshape %93 : (tensor<2x9x9xf32>) -> tensor<2x9x9xf32>
    %95 = stablehlo.reshape %74 : (tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
    %96 = stablehlo.broadcast_in_dim %95, dims = [0, 1, 2] : (tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
    %97 = stablehlo.dot_general %94, %96, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x9x9xf32>, tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
    %98 = stablehlo.reshape %97 : (tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
    %99 = stablehlo.add %62, %98 : tensor<2x9x4xf32>
    %100 = stablehlo.convert %99 : (tensor<2x9x4xf32>) -> tensor<2x9x4xf64>
    %101 = stablehlo.reduce(%100 init: %cst_32) applies stablehlo.add across dimensions = [2] : (tensor<2x9x4xf64>, tensor<f64>) -> tensor<2x9xf64>
    %102 = stablehlo.reshape %101 : (tensor<2x9xf64>) -> tensor<2x9x1xf64>
    %103 = stablehlo.convert %cst_36 : (tensor<1xi64>) -> tensor<1xf64>
    %104 = stablehlo.reshape %103 : (tensor<1xf64>) -> tensor<f64>
    %105 = stablehlo.broadcast_in_dim %104, dims = [] : (tensor<f64>) -> tensor<2x9x1xf64>
    %106 = stablehlo.divide %102, %105 : tensor<2x9x1xf64>
    %107 = stablehlo.broadcast_in_dim %106, dims = [0, 1, 2] : (tensor<2x9x1xf64>) -> tensor<2x9x4xf64>
    %108 = stablehlo.subtract %100, %107 : tensor<2x9x4xf64>
    %109 = stablehlo.multiply %108, %108 : tensor<2x9x4xf64>
    %110 = stablehlo.reduce(%109 init: %cst_32) applies stablehlo.add across dimensions = [2] : (tensor<2x9x4xf64>, tensor<f64>) -> tensor<2x9xf64>
    %111 = stablehlo.reshape %110 : (tensor<2x9xf64>) -> tensor<2x9x1xf64>
    %112 = stablehlo.divide %111, %105 : tensor<2x9x1xf64>
    %113 = stablehlo.convert %112 : (tensor<2x9x1xf64>) -> tensor<2x9x1xf32>
    %114 = stablehlo.reduce(%99 init: %cst_31) applies stablehlo.add across dimensions = [2] : (tensor<2x9x4xf32>, tensor<f32>) -> tensor<2x9xf32>
    %115 = stablehlo.reshape %114 : (tensor<2x9xf32>) -> tensor<2x9x1xf32>
    %116 = stablehlo.convert %cst_36 : (tensor<1xi64>) -> tensor<1xf32>
    %117 = stablehlo.reshape %116 : (tensor<1xf32>) -> tensor<f32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [] : (tensor<f32>) -> tensor<2x9x1xf32>
    %119 = stablehlo.divide %115, %118 : tensor<2x9x1xf32>
    %120 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<2x9x1xf32>
    %121 = stablehlo.add %113, %120 : tensor<2x9x1xf32>
    %122 = stablehlo.rsqrt %121 : tensor<2x9x1xf32>
    %123 = stablehlo.broadcast_in_dim %119, dims = [0, 1, 2] : (tensor<2x9x1xf32>) -> tensor<2x9x4xf32>
    %124 = stablehlo.subtract %99, %123 : tensor<2x9x4xf32>
    %125 = stablehlo.broadcast_in_dim %122, dims = [0, 1, 2] : (tensor<2x9x1xf32>) -> tensor<2x9x4xf32>
    %126 = stablehlo.multiply %124, %125 : tensor<2x9x4xf32>
    %127 = stablehlo.broadcast_in_dim %cst_2, dims = [2] : (tensor<4xf32>) -> tensor<2x9x4xf32>
    %128 = stablehlo.multiply %126, %127 : tensor<2x9x4xf32>
    %129 = stablehlo.broadcast_in_dim %cst_1, dims = [2] : (tensor<4xf32>) -> tensor<2x9x4xf32>
    %130 = stablehlo.add %128, %129 : tensor<2x9x4xf32>
    %131 = stablehlo.reduce(%130 init: %cst_31) applies stablehlo.add across dimensions = [1] : (tensor<2x9x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %132 = stablehlo.convert %cst_37 : (tensor<1xi64>) -> tensor<1xf32>
    %133 = stablehlo.reshape %132 : (tensor<1xf32>) -> tensor<f32>
    %134 = stablehlo.broadcast_in_dim %133, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %135 = stablehlo.divide %131, %134 : tensor<2x4xf32>
    %136 = stablehlo.transpose %cst_0, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %137 = stablehlo.dot_general %135, %136, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    %138 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %139 = stablehlo.multiply %137, %138 : tensor<2x3xf32>
    %140 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %141 = stablehlo.multiply %140, %cst : tensor<3xf32>
    %142 = stablehlo.broadcast_in_dim %141, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %143 = stablehlo.add %139, %142 : tensor<2x3xf32>
    %144 = stablehlo.reduce(%143 init: %cst_30) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %145 = stablehlo.reshape %144 : (tensor<2xf32>) -> tensor<2x1xf32>
    %146 = stablehlo.broadcast_in_dim %145, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %147 = stablehlo.subtract %143, %146 : tensor<2x3xf32>
    %148 = stablehlo.exponential %147 : tensor<2x3xf32>
    %149 = stablehlo.reduce(%148 init: %cst_31) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %150 = stablehlo.reshape %149 : (tensor<2xf32>) -> tensor<2x1xf32>
    %151 = stablehlo.log %150 : tensor<2x1xf32>
    %152 = stablehlo.broadcast_in_dim %151, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %153 = stablehlo.subtract %147, %152 : tensor<2x3xf32>
    return %153 : tensor<2x3xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_3_torch.float32: "0x0400000038C99BBE6849E83ED06FAF3E",
      torch_tensor_3_4_torch.float32: "0x04000000F2D4F03E547FAC3EB03E5FBED4DC00BE78DDF3BE803E13BC78C8C0BEA277C5BE20B0E1BCA0BF993DF4AD51BE98E7973E",
      torch_tensor_4_torch.float32_6: "0x0400000000000000000000000000000000000000",
      torch_tensor_4_torch.float32_5: "0x040000000000803F0000803F0000803F0000803F",
      torch_tensor_12_torch.float32: "0x040000008CE4443E34A197BEDCB13B3E1676813E5C43B73E48713F3E4A5FFDBE0011A6BE38A67F3E1853D63D96B3C7BEE86893BE",
      torch_tensor_12_4_torch.float32: "0x04000000406AD73C3A3F83BEC03EAD3D9E06EFBE1AFAB8BEC6F983BE2685A13E2619963EC81163BE20CB93BC40BAA33E827FFE3E24344B3EC8558A3DFEA4AB3EC0BB96BEF8D0BE3D6C7AC6BE186EB1BED23E84BE8CAA673EF8E74D3E6AA497BEC8AD1A3E6E898C3E203F81BD40649C3C0044ED3D00D19E3E48CFF53E9647C5BEECA13BBE9838493ED01BD43EE8C5DE3E22E2E13E78CACB3DF89CDEBE90663C3DAC27A0BE8C94EEBE3E74E33EF0A6C23EFE5DFFBE08AABF3DC880ACBDB882A8BD1C5F6ABE",
      torch_tensor_4_torch.float32_4: "0x0400000000000000000000000000000000000000",
      torch_tensor_4_torch.float32_3: "0x040000000000803F0000803F0000803F0000803F",
      torch_tensor_4_torch.float32_2: "0x040000000000803F0000803F0000803F0000803F",
      torch_tensor_4_torch.float32_1: "0x0400000000000000000000000000000000000000",
      torch_tensor_4_1_3_3_torch.float32: "0x04000000568D23BB281B373E64778CBE56337BBE4E7703BEE60FB73DAB69D8BBDF51873E9654F2BC66A4B43D904FCEBD4B3086BDD00BA3BE180F62BE9BB40CBEAB4E4A3CEBF0063ECBCE4C3E666767BE53A314BECBF4F73D34B88D3E307E8CBD7B6C7F3EAB115CBDB678103DDC889A3E8A529EBEDEE156BED6D3ACBD3E0D05BEC674933ECE3E5DBE80201DBE23786EBEFAD69FBE",
      torch_tensor_4_torch.float32: "0x04000000064047BE6AB4923E284F183E566F253E"
    }
  }
#-}
