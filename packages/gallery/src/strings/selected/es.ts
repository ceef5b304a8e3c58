import { formatCount } from '../locale.ts'
import type { selected as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

/** The texts of the actions for selected files. */
export const selected: typeof english = {
  copy: 'Copiar enlaces',
  delete: 'Eliminar',
  clear: 'Anular la selección',
  all: 'Seleccionar todo',
  selecting: 'Seleccionando…',
  copyAs: 'Copiar enlaces como…',
  form: { plain: 'Enlaces simples', markdown: 'Markdown', html: 'HTML' },
  zip: 'Descargar como ZIP',
  addLabel: 'Etiquetar',
  labelTitle: (count: number) => (count === 1 ? 'Etiquetar este archivo' : `Etiquetar ${files(count)}`),
  labelled: (count: number) => `Etiqueta puesta: ${files(count)}.`,
  missing: (count: number) => `${files(count)} ya no ${count === 1 ? 'existe' : 'existen'}.`,
  zipStarted: (count: number) =>
    `Empaquetando ${files(count)}. La descarga empieza cuando el archivo ZIP está completo.`,
  zipFailed: 'No se pudo crear el archivo ZIP, porque un archivo no se pudo descargar. Inténtalo de nuevo.',
}
