import { formatCount } from '../locale.ts'
import type { labels as english } from './en.ts'

/** The texts of fields for labels, and why they are refused. */
export const labels: typeof english = {
  legend: 'Etiquetas',
  key: 'Clave',
  value: 'Valor',
  keyOf: (row) => `Clave de la etiqueta ${formatCount(row)}`,
  valueOf: (row) => `Valor de la etiqueta ${formatCount(row)}`,
  add: 'Añadir una etiqueta',
  remove: (label) => `Quitar la etiqueta ${label}`,
  noKey: (value) =>
    value === '' ? 'Escribe la clave de la etiqueta.' : `Escribe una clave para el valor «${value}».`,
  badKey: (key) =>
    `«${key}» no puede ser la clave de una etiqueta. Una clave tiene hasta 40 letras de la a a la z, cifras, _ . y -, sin espacios.`,
  badValue: (key) =>
    `El valor de la etiqueta «${key}» es demasiado largo o tiene caracteres de control. Un valor tiene hasta 200 caracteres.`,
  twice: (key) => `Dos etiquetas tienen la clave «${key}». Quita una de ellas.`,
  tooMany: (key) => `Un archivo tiene hasta 16 etiquetas. Quita «${key}» u otra.`,
}
