/** Every word that people read. */
export const strings = {
  product: 'Mediabucket',
} as const
