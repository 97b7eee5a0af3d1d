//! Short Weierstrass curves y^2 = x^3 - 3x + b of prime order: eight points at once.
//!
//! Points are Jacobian, (X / Z^2, Y / Z^3), and tables affine, so that there are two formulas: doubling, and adding an affine point. The
//! second is wrong for a point and itself or its negative. Scalars are written in odd digits, so that no digit is zero and neither case,
//! nor the point at infinity, can come up before the last addition of a multiplication; [`Jacobian::add_last`] handles that one.

use crate::field::{Field, Prime, Tight};

/// A curve with a = -3 and cofactor 1.
pub(crate) trait Curve<const D: usize>: Sized + 'static {
    /// What its coordinates are counted in.
    type Field: Field<D>;
    /// The number of its points.
    type Order: Prime<D>;
    /// The constant b.
    const B: [u64; D];
    /// The base point.
    const BASE: [[u64; D]; 2];
    /// Multiples of the base point, made on first use.
    fn comb() -> &'static crate::scalar_mult::Comb<Self, D>;
}

pub(crate) type Coordinate<C, const D: usize> = Tight<<C as Curve<D>>::Field, D>;

/// Points other than infinity.
pub(crate) struct Affine<C: Curve<D>, const D: usize> {
    pub(crate) x: Coordinate<C, D>,
    pub(crate) y: Coordinate<C, D>,
}

/// Points (X / Z^2, Y / Z^3).
pub(crate) struct Jacobian<C: Curve<D>, const D: usize> {
    x: Coordinate<C, D>,
    y: Coordinate<C, D>,
    z: Coordinate<C, D>,
}

macro_rules! copy { ($($name:ident)*) => { $(
    impl<C: Curve<D>, const D: usize> Copy for $name<C, D> {}
    impl<C: Curve<D>, const D: usize> Clone for $name<C, D> {
        fn clone(&self) -> Self {
            *self
        }
    }
)* } }
copy!(Affine Jacobian);

impl<C: Curve<D>, const D: usize> Affine<C, D> {
    /// The base point in every lane.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn base() -> Self {
        Self { x: Tight::splat(C::BASE[0]).to_montgomery(), y: Tight::splat(C::BASE[1]).to_montgomery() }
    }

    /// Which lanes satisfy the curve's equation.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn on_curve(&self) -> u8 {
        let cube = self.x.square().carry().mul(&self.x);
        let three_x = self.x.loose().shl::<1>().add(&self.x.loose());
        let b = Tight::<C::Field, D>::splat(C::B).to_montgomery();
        self.y.square().sub(&cube).add(&three_x).sub(&b.loose()).tighten().is_zero()
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn jacobian(self) -> Jacobian<C, D> {
        Jacobian { x: self.x, y: self.y, z: Tight::one() }
    }

    /// The negative where the mask's bit is set.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn negate_where(self, mask: u8) -> Self {
        Self { x: self.x, y: self.y.loose().negate_where(mask).tighten() }
    }

    /// Where the mask's bit is set `b`, elsewhere `a`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn select(mask: u8, a: &Self, b: &Self) -> Self {
        Self { x: Tight::select(mask, &a.x, &b.x), y: Tight::select(mask, &a.y, &b.y) }
    }
}

impl<C: Curve<D>, const D: usize> Jacobian<C, D> {
    /// 2P: dbl-2001-b of Bernstein and Lange's Explicit-Formulas Database, 3 products and 5 squares, ordered so that the carries of one
    /// product have another beside them.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn double(&mut self) {
        let delta = self.z.square().carry();
        let gamma = self.y.square().carry();
        let sum_square = self.y.add(&self.z).carry().square();
        let slope = self.x.sub(&delta).tighten().mul(&self.x.add(&delta).carry());
        let beta = self.x.mul(&gamma);
        let alpha = slope.shl::<1>().add(&slope).carry();
        let alpha_square = alpha.square();
        let gamma_square = gamma.square();
        let (beta_4, beta_8) = (beta.shl::<2>(), beta.shl::<3>());
        let rest = beta_4.add(&beta_8).sub(&alpha_square).tighten(); // 4 beta - x
        self.z = sum_square.sub(&gamma.add(&delta)).tighten();
        self.x = alpha_square.sub(&beta_8).tighten();
        self.y = alpha.mul(&rest).sub(&gamma_square.shl::<3>()).tighten();
    }

    /// P + Q, or P - Q where the mask's bit is set, for P that is none of infinity, Q, -Q: 8 products and 3 squares.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn add(&mut self, other: &Affine<C, D>, negative: u8) {
        let zz = self.z.square().carry();
        let u = other.x.mul(&zz);
        let zzz = self.z.mul(&zz).carry();
        let h = u.sub(&self.x.loose()).tighten();
        let s = other.y.mul(&zzz);
        let hh = h.square().carry();
        let r = s.negate_where(negative).sub(&self.y.loose()).tighten();
        self.z = self.z.mul(&h).carry();
        let hhh = h.mul(&hh);
        let v = self.x.mul(&hh);
        let r_square = r.square();
        let y_hhh = self.y.mul(&hhh.carry());
        let less = r_square.sub(&hhh); // x + 2v
        let rest = v.shl::<1>().add(&v).sub(&less).tighten(); // v - x
        self.x = less.sub(&v.shl::<1>()).tighten();
        self.y = r.mul(&rest).sub(&y_hhh).tighten();
    }

    /// As [`Self::add`], but P may be Q.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn add_last(&mut self, other: &Affine<C, D>, negative: u8) {
        self.add(other, negative);
        let mut twice = other.negate_where(negative).jacobian();
        twice.double();
        *self = Self::select(self.z.is_zero(), self, &twice);
    }

    /// Where the mask's bit is set `b`, elsewhere `a`.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn select(mask: u8, a: &Self, b: &Self) -> Self {
        Self { x: Tight::select(mask, &a.x, &b.x), y: Tight::select(mask, &a.y, &b.y), z: Tight::select(mask, &a.z, &b.z) }
    }

    /// x alone, for which a point and its negative are the same.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn affine_x(&self) -> Coordinate<C, D> {
        self.x.mul(&self.z.invert().square().carry()).carry()
    }

    /// The same points with Z = 1.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn affine(&self) -> Affine<C, D> {
        self.divide(&self.z.invert())
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    fn divide(&self, z_inverse: &Coordinate<C, D>) -> Affine<C, D> {
        let square = z_inverse.square().carry();
        Affine { x: self.x.mul(&square).carry(), y: self.y.mul(&square.mul(z_inverse).carry()).carry() }
    }

    /// All of them with Z = 1 for one inversion and three products each.
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512ifma")]
    pub(crate) fn affine_all<const N: usize>(points: &[Self; N]) -> [Affine<C, D>; N] {
        let mut before = [Tight::one(); N]; // before[i]: the product of Z of the points before i
        for i in 1..N {
            before[i] = before[i - 1].mul(&points[i - 1].z).carry();
        }
        let mut inverse = before[N - 1].mul(&points[N - 1].z).carry().invert();
        let mut result = [Affine { x: Tight::one(), y: Tight::one() }; N];
        for i in (0..N).rev() {
            result[i] = points[i].divide(&before[i].mul(&inverse).carry());
            inverse = inverse.mul(&points[i].z).carry();
        }
        result
    }
}
