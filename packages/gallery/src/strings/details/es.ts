import { formatCount } from '../locale.ts'
import type { details as english } from './en.ts'

/** The texts of the details of a file, and of the form that edits them. */
export const details: typeof english = {
  title: 'Detalles',
  name: 'Nombre',
  path: 'Ruta',
  type: 'Tipo',
  size: 'Tamaño',
  sizeExact: (size: string, bytes: number) => (bytes < 1000 ? size : `${size} (${formatCount(bytes)} bytes)`),
  dimensions: 'Dimensiones',
  pixels: (width: number, height: number) => `${formatCount(width)} × ${formatCount(height)} píxeles`,
  added: 'Añadido',
  expires: 'Caduca',
  hash: 'SHA-256',
  link: 'Enlace',
  altText: 'Texto alternativo',
  altTextHint: 'Describe la imagen a quienes no pueden verla.',
  caption: 'Pie de foto',
  labels: 'Etiquetas',
  edit: 'Editar',
  save: 'Guardar',
  saved: 'Guardado.',
  notSaved: (reason: string) => `No se guardaron los cambios. ${reason}`,
  conflict:
    'Otras personas han cambiado este archivo desde que abriste el formulario. No se guardó nada. Compara los textos; después guarda los tuyos o usa los suyos.',
  theirs: 'Guardado por otras personas:',
  noText: 'sin texto',
  useTheirs: 'Usar el suyo',
  useTheirsOf: (label: string) => `Usar el suyo: ${label}`,
  saveMine: 'Guardar el mío',
  focus: {
    legend: 'Punto focal',
    hint: 'Los tamaños más pequeños que recortan la imagen mantienen este punto a la vista. Haz clic en la imagen o mueve el punto con las flechas. Escape lo deshace.',
    none: 'No hay ningún punto.',
    at: (left: number, top: number) =>
      `${left.toFixed(0)} % desde la izquierda, ${top.toFixed(0)} % desde arriba`,
    clear: 'Quitar el punto',
    crops: 'Lo que muestran los tamaños recortados',
    crop: (name: string, width: number, height: number) => `${name}, ${width} × ${height}`,
  },
  /** What cameras write into pictures. */
  camera: {
    taken: 'Tomada',
    camera: 'Cámara',
    lens: 'Objetivo',
    exposure: 'Exposición',
    focalLength: 'Distancia focal',
    location: 'Ubicación',
    locationHint: 'Cualquiera que reciba el archivo o su enlace puede leer la ubicación.',
  },
  /** The question before a picture with a location is shared. */
  location: {
    title: 'Ubicación en la imagen',
    warning: (name: string) =>
      `«${name}» contiene el lugar donde se tomó. Cualquiera que reciba el archivo o su enlace puede leerlo.`,
    notExaminedTitle: 'Ubicación no comprobada',
    notExamined: (name: string) =>
      `No se pudo cargar «${name}» para comprobar si contiene el lugar donde se tomó. Si lo contiene, cualquiera que reciba el archivo o su enlace puede leerlo.`,
    share: 'Compartir de todos modos',
  },
}
