import { formatCount } from '../locale.ts'
import type { deletion as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

/** The texts of the question before a deletion, and of its progress. */
export const deletion: typeof english = {
  title: (count: number) => (count === 1 ? '¿Eliminar este archivo?' : `¿Eliminar ${files(count)}?`),
  one: (name: string) => `«${name}» se eliminará para todos los que tengan su enlace. No se puede deshacer.`,
  many: 'Se eliminarán para todos los que tengan sus enlaces. No se puede deshacer.',
  confirm: (count: number) => (count === 1 ? 'Eliminar' : `Eliminar ${files(count)}`),
  busy: (done: number, count: number) => `Eliminando ${formatCount(done + 1)} de ${formatCount(count)}…`,
  moving: (count: number) => `Moviendo ${files(count)} a la papelera…`,
}
