export default {
  images: {
    loader: 'custom',
    loaderFile: './loader.js',
    // The widths of the sizes of the service.
    deviceSizes: [400, 1600],
    imageSizes: [],
  },
  experimental: { serverActions: { bodySizeLimit: '20mb' } },
}
