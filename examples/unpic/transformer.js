/** For `<Image transformer={transformer}>` of `@unpic/react/base` and the other packages of unpic. */
export function transformer(src, { width }) {
  return width ? `${src}${`${src}`.includes('?') ? '&' : '?'}w=${Math.round(width)}` : `${src}`
}
