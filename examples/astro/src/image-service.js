/** The widths of the sizes of the service. */
const widths = [400, 1600]

const withWidth = (src, width) => `${src}${src.includes('?') ? '&' : '?'}w=${width}`

export default {
  getURL: ({ src, width = 1600 }) => withWidth(src, width),
  getSrcSet: ({ src }) =>
    widths.map((width) => ({
      url: withWidth(src, width),
      transform: { src, width },
      descriptor: `${width}w`,
      attributes: {},
    })),
  getHTMLAttributes: ({ src: _, format, quality, densities, widths, inferSize, ...attributes }) => ({
    loading: 'lazy',
    decoding: 'async',
    ...attributes,
  }),
}
