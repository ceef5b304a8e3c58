export default function loader({ src, width }) {
  return `${src}${src.includes('?') ? '&' : '?'}w=${width}`
}
