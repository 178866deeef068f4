// Reads digits with the network that deploy_digits.py has compiled: prints the first ones, how many of all are read
// right, and how long one takes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "digits.h"

namespace {

void Draw(const float* image, int height, int width) {
  const char shades[] = " .:-=+*#%@";
  for (int i = 0; i < height; ++i) {
    for (int j = 0; j < width; ++j) {
      const float value = std::min(std::max(image[i * width + j], 0.0f), 0.999f);
      const char shade = shades[static_cast<int>(value * 10)];
      std::putchar(shade), std::putchar(shade);
    }
    std::putchar('\n');
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::FILE* file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
  std::int32_t head[3];
  if (file == nullptr || std::fread(head, sizeof(std::int32_t), 3, file) != 3) {
    std::fprintf(stderr, "usage: read_digits images.bin\n");
    return 2;
  }
  const std::size_t count = head[0], pixels = std::size_t(head[1]) * head[2];
  std::vector<float> images(count * pixels);
  std::vector<std::int32_t> labels(count);
  if (pixels != nets::Digits::arg0_count() ||
      std::fread(images.data(), sizeof(float), images.size(), file) != images.size() ||
      std::fread(labels.data(), sizeof(std::int32_t), count, file) != count) {
    std::fprintf(stderr, "%s has other images\n", argv[1]);
    return 2;
  }
  std::fclose(file);

  nets::Digits network(nets::Digits::AllocMode::RESULTS_AND_TEMPS_ONLY);
  std::size_t right = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t k = 0; k < count; ++k) {
    network.set_arg0_data(&images[k * pixels]);
    if (!network.Run()) {
      std::fprintf(stderr, "%s\n", network.error_message());
      return 1;
    }
    right += network.result0() == labels[k];
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  for (std::size_t k = 0; k < std::min<std::size_t>(count, 2); ++k) {
    network.set_arg0_data(&images[k * pixels]);
    network.Run();
    Draw(&images[k * pixels], head[1], head[2]);
    std::printf("read as %d, probability %.3f\n", int(network.result0()), network.result1(network.result0()));
  }
  std::printf("C++:    %.2f%% of %d test digits read right, %.1f us each\n", 100.0 * right / count, int(count),
              time.count() / count);
}
