import { formatCount } from '../locale.ts'
import type { trash as english } from './en.ts'

const files = (count: number) => (count === 1 ? '1 archivo' : `${formatCount(count)} archivos`)

/** The texts of the trash. */
export const trash: typeof english = {
  about: (days: number) =>
    days === 0
      ? 'Los archivos que se eliminen ahora no van a la papelera.'
      : `Los archivos eliminados permanecen aquí ${days === 1 ? '1 día' : `${formatCount(days)} días`}.`,
  all: 'Seleccionar todos los mostrados',
  list: 'Archivos eliminados',
  loading: 'Cargando la papelera…',
  failedToLoad: 'No se pudo cargar la papelera',
  none: 'La papelera está vacía',
  deletedAt: (time: string) => `Eliminado: ${time}`,
  left: (days: number) => (days === 1 ? 'queda 1 día' : `quedan ${formatCount(days)} días`),
  more: 'Mostrar más',
  restore: 'Restaurar',
  delete: 'Eliminar definitivamente',
  empty: 'Vaciar la papelera',
  confirmDelete: (count: number) =>
    count === 1 ? '¿Eliminar este archivo definitivamente?' : `¿Eliminar ${files(count)} definitivamente?`,
  confirmEmpty: '¿Eliminar todos los archivos de la papelera?',
  forGood: 'No se puede deshacer.',
  deleted: (count: number) =>
    count === 1 ? '1 archivo eliminado definitivamente.' : `${files(count)} eliminados definitivamente.`,
  emptied: 'La papelera está vacía ahora.',
}
